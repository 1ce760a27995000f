# SPDX-License-Identifier: MIT
# Completion of dotnet-mapgen for bash. A test compares the options with --help.

_dotnet_mapgen_processes() {
	# Processes that host a runtime; the heading begins with a word, not with a number.
	dotnet-mapgen list 2> /dev/null | awk '$1 ~ /^[0-9]+$/ { print $1 }'
}

_dotnet_mapgen() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local options value
	COMPREPLY=()

	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W 'list info generate merge watch resolve symbolize perf-fix standin symbols bcc --help --version' -- "$current")
		return
	fi
	case ${COMP_WORDS[1]} in
	list | info) options='--pid --root --json --help --version' ;;
	generate) options='--pid --output --format --crossgen --platform --root --json --help --version' ;;
	merge) options='--pid --output --mode --names --tiers --jit --debug-dir --enable-perfmap --in-target --undo --maps --root --json --help --version' ;;
	watch) options='--pid --output --mode --names --tiers --jit --debug-dir --enable-perfmap --in-target --maps --for --interval --root --json --help --version' ;;
	resolve) options='--pid --names --tiers --jit --debug-dir --core --lines --inlines --fetch --rva --server --store --root --json --help --version' ;;
	symbolize) options='--pid --names --tiers --jit --debug-dir --verbose --root --json --help --version' ;;
	standin) options='--pid --debug-dir --names --tiers --root --json --help --version' ;;
	perf-fix) options='--pid --output --in-place --mode --buildid-dir --debug-dir --native --maps --undo --names --tiers --jit --root --json --help --version' ;;
	symbols) options='--pid --server --store --offline --root --json --help --version' ;;
	bcc) options='--names --tiers --jit --strict --report --help --version' ;;
	*) return ;;
	esac

	# "--option=value" arrives as three words, because '=' breaks words.
	value=$current
	if [ "$previous" = = ]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	elif [ "$current" = = ]; then
		value=
	fi
	case $previous in
	-p | --pid) mapfile -t COMPREPLY < <(compgen -W "$(_dotnet_mapgen_processes)" -- "$value") ;;
	--format) mapfile -t COMPREPLY < <(compgen -W 'map r2rmap' -- "$value") ;;
	--mode)
		local modes='append replace'
		[ "${COMP_WORDS[1]}" != perf-fix ] || modes='elf anon'
		mapfile -t COMPREPLY < <(compgen -W "$modes" -- "$value")
		;;
	--names)
		local forms='full short'
		[ "${COMP_WORDS[1]}" != resolve ] || forms='full short raw'
		mapfile -t COMPREPLY < <(compgen -W "$forms" -- "$value")
		;;
	--for | --interval | --server) ;;
	--tiers) mapfile -t COMPREPLY < <(compgen -W 'keep strip' -- "$value") ;;
	--native) mapfile -t COMPREPLY < <(compgen -W 'dotnet all none' -- "$value") ;;
	--jit) mapfile -t COMPREPLY < <(compgen -W 'auto contract rundown perfmap none' -- "$value") ;;
	--platform | --maps | --root | --store | --buildid-dir | --debug-dir) mapfile -t COMPREPLY < <(compgen -d -- "$value") ;;
	-o | --output | --crossgen | --core) mapfile -t COMPREPLY < <(compgen -f -- "$value") ;;
	*)
		case $current in
		-*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current") ;;
		*) [ "${COMP_WORDS[1]}" != bcc ] || {
			mapfile -t COMPREPLY < <(compgen -c -- "$current" | sort -u)
			return
		} ;;&
		*) mapfile -t COMPREPLY < <(compgen -W "$(_dotnet_mapgen_processes)" -- "$current"
			[ "${COMP_WORDS[1]}" != standin ] || compgen -W 'install list remove' -- "$current"
			case ${COMP_WORDS[1]} in standin | generate | symbolize | perf-fix) compgen -f -- "$current" ;; esac) ;;
		esac
		;;
	esac
}

complete -o filenames -F _dotnet_mapgen dotnet-mapgen
