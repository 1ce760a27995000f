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
		mapfile -t COMPREPLY < <(compgen -W 'list info generate merge watch resolve symbolize perf-fix standin record report flame top events check stack fetch-symbols bcc --help --version' -- "$current")
		return
	fi
	case ${COMP_WORDS[1]} in
	list | info) options='--pid --root --no-limits --json --help --version' ;;
	generate) options='--pid --output --format --crossgen --platform --root --no-limits --json --help --version' ;;
	merge) options='--pid --output --mode --names --tiers --jit --debug-dir --enable-perfmap --in-target --undo --maps --root --no-limits --json --help --version' ;;
	watch) options='--pid --output --mode --names --tiers --jit --debug-dir --enable-perfmap --in-target --maps --for --interval --root --no-limits --json --help --version' ;;
	resolve) options='--pid --names --no-demangle --tiers --jit --debug-dir --core --lines --urls --return-addresses --inlines --fetch --symbolize-at --rva --server --debug-tree --root --no-limits --json --help --version' ;;
	symbolize) options='--pid --names --tiers --lines --jit --debug-dir --verbose --root --no-limits --json --help --version' ;;
	standin) options='--pid --debug-tree --names --tiers --root --no-limits --json --help --version' ;;
	perf-fix) options='--pid --output --in-place --via --buildid-dir --debug-dir --native --perf-maps --undo --names --tiers --jit --root --no-limits --json --help --version' ;;
	record) options='--pid --output --all --for --frequency --off-cpu --events --stacks --stop-on --ring --unwind --no-kernel --keep-stack-bytes --perfview --no-limits --help --version' ;;
	check) options='--pid --input --debug-dir --perf-maps --min --root --no-limits --json --help --version' ;;
	report) options='--input --output --debug-dir --perf-maps --symbolize-at --format --by --urls --callers-of --callees-of --event --thread --from --to --top --idle --names --root --help --version' ;;
	flame) options='--pid --input --output --for --frequency --no-kernel --view --diff --all --thread --idle --no-limits --help --version' ;;
	events) options='--pid --events --stacks --for --no-limits --help --version' ;;
	top) options='--pid --frequency --no-kernel --batch --number --top --no-limits --help --version' ;;
	stack) options='--pid --debug-dir --jit --core --lines --names --root --no-limits --json --help --version' ;;
	fetch-symbols) options='--pid --server --debug-tree --names-only --offline --root --no-limits --json --help --version' ;;
	bcc) options='--names --tiers --jit --report --no-limits --help --version' ;;
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
	--format)
		local formats='map r2rmap'
		[ "${COMP_WORDS[1]}" != report ] || formats='text json csv folded speedscope pprof perf-script html svg'
		mapfile -t COMPREPLY < <(compgen -W "$formats" -- "$value")
		;;
	--view) mapfile -t COMPREPLY < <(compgen -W 'cpu off-cpu gc alloc exceptions contention waits threadpool jit events' -- "$value") ;;
	--by) mapfile -t COMPREPLY < <(compgen -W 'function thread process image tree line' -- "$value") ;;
	--mode) mapfile -t COMPREPLY < <(compgen -W 'append replace' -- "$value") ;;
	--via) mapfile -t COMPREPLY < <(compgen -W 'build-id perfmap' -- "$value") ;;
	--stacks) mapfile -t COMPREPLY < <(compgen -W 'native managed none' -- "$value") ;;
	--unwind) mapfile -t COMPREPLY < <(compgen -W 'whole fp' -- "$value") ;;
	--names) mapfile -t COMPREPLY < <(compgen -W 'full short csharp' -- "$value") ;;
	-d | -F | --events | --stop-on | --ring | --for | --frequency | --interval | --server | --callers-of | --callees-of | --event | --thread | --from | --to | --top | --number) ;;
	--tiers) mapfile -t COMPREPLY < <(compgen -W 'keep strip' -- "$value") ;;
	--native) mapfile -t COMPREPLY < <(compgen -W 'dotnet all none' -- "$value") ;;
	--jit) mapfile -t COMPREPLY < <(compgen -W 'auto memory rundown perfmap none' -- "$value") ;;
	--platform | --maps | --perf-maps | --root | --debug-tree | --buildid-dir | --debug-dir) mapfile -t COMPREPLY < <(compgen -d -- "$value") ;;
	-i | --input | --diff | -o | --output | --crossgen | --core) mapfile -t COMPREPLY < <(compgen -f -- "$value") ;;
	*)
		case $current in
		-*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current") ;;
		*) [ "${COMP_WORDS[1]}" != bcc ] || {
			mapfile -t COMPREPLY < <(compgen -c -- "$current" | sort -u)
			return
		} ;;&
		*) [ "${COMP_WORDS[1]}" != report ] || {
			mapfile -t COMPREPLY < <(compgen -W 'summary cpu off-cpu threads gc alloc exceptions contention waits threadpool jit events counters' -- "$current")
			return
		} ;;&
		*) mapfile -t COMPREPLY < <(
			case ${COMP_WORDS[1]} in
			perf-fix) ;;
			standin) [ "$COMP_CWORD" -ne 2 ] || {
				compgen -W 'install list remove' -- "$current"
				exit
			} ;;&
			*) compgen -W "$(_dotnet_mapgen_processes)" -- "$current" ;;
			esac
			case ${COMP_WORDS[1]} in standin | generate | symbolize | perf-fix) compgen -f -- "$current" ;; esac
		) ;;
		esac
		;;
	esac
}

complete -o filenames -F _dotnet_mapgen dotnet-mapgen
