#!/bin/sh
# SPDX-License-Identifier: MIT
# Relative maps of a whole framework, ours against those of the real crossgen
# that shipped with it: runtime pack 3.1.3, fetched once with the SDK's own
# restore and kept outside the checkout. Every row must be the same bytes.
# BUILD says where dotnet-mapgen is.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/meta/report.sh

version=3.1.3
mapgen=${BUILD:-build}/dotnet-mapgen
cache=${LIBSYM_DEV_CACHE:-$HOME/.cache/libsym-dev}
pack=$cache/packs/microsoft.netcore.app.runtime.linux-x64/$version
native=$pack/runtimes/linux-x64/native
managed=$pack/runtimes/linux-x64/lib/netcoreapp3.1
maps=$cache/crossgen-$version-maps
name='relative maps equal those of crossgen'

fetch_pack() {
	cat > "$scratch/fetch.csproj" <<-END
	<Project Sdk="Microsoft.NET.Sdk">
	  <PropertyGroup>
	    <TargetFramework>netstandard2.0</TargetFramework>
	    <DisableImplicitFrameworkReferences>true</DisableImplicitFrameworkReferences>
    <RestorePackagesPath>$cache/packs</RestorePackagesPath>
	  </PropertyGroup>
	  <ItemGroup>
	    <PackageDownload Include="Microsoft.NETCore.App.Runtime.linux-x64" Version="[$version]" />
	  </ItemGroup>
	</Project>
	END
	DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 dotnet restore "$scratch/fetch.csproj" > "$scratch/restore" 2>&1
}

# Maps of all images, in a directory that appears only when it is complete.
make_maps() {
	cp "$pack/tools/crossgen" "$scratch/crossgen" && chmod +x "$scratch/crossgen" || return 1
	mkdir "$scratch/maps"
	for image in "$managed"/*.dll "$native"/*.dll; do
		DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 "$scratch/crossgen" /CreatePerfMap "$scratch/maps" \
			/Platform_Assemblies_Paths "$managed:$native" "$image" > "$scratch/log" 2>&1
		# 11 (0x8007000B): IL only, so without a map.
		case $? in
		0 | 11) ;;
		*)
			tail -n 3 "$scratch/log"
			return 1
			;;
		esac
	done
	rm -rf "$maps.new" && cp -r "$scratch/maps" "$maps.new" && mv "$maps.new" "$maps"
}

if [ ! -x "$pack/tools/crossgen" ] && [ ! -f "$pack/tools/crossgen" ]; then
	command -v dotnet > /dev/null || { skipped "$name" 'no .NET SDK to fetch the runtime pack with'; finish; }
	fetch_pack || { skipped "$name" "the runtime pack could not be had: $(grep -m 1 error "$scratch/restore")"; finish; }
fi
[ -d "$maps" ] || make_maps || { failed "$name" 'crossgen made no maps'; finish; }

"$mapgen" generate "$managed" "$native" -o "$scratch/ours" > "$scratch/output" 2>&1 || {
	tail -n 3 "$scratch/output"
	failed "$name" 'generate failed'
	finish
}
: > "$scratch/bad"
count=0 rows=0 equal=0
for map in "$maps"/*.map; do
	file=${map##*/}
	LC_ALL=C sort "$map" > "$scratch/theirs.sorted"
	LC_ALL=C sort "$scratch/ours/$file" > "$scratch/ours.sorted" 2> /dev/null || {
		# An image without methods: crossgen writes an empty map.
		[ -s "$map" ] && echo "$file: not made" >> "$scratch/bad"
	}
	count=$((count + 1))
	rows=$((rows + $(wc -l < "$map")))
	equal=$((equal + $(LC_ALL=C comm -12 "$scratch/theirs.sorted" "$scratch/ours.sorted" | wc -l)))
	cmp -s "$scratch/theirs.sorted" "$scratch/ours.sorted" ||
		echo "$file: $(diff "$scratch/theirs.sorted" "$scratch/ours.sorted" | sed -n 2p)" >> "$scratch/bad"
done
echo "    $count maps, $rows rows, $equal equal"
verdict "$name" "$scratch/bad"
finish
