# SPDX-License-Identifier: MIT
# The whole build. `make help` lists the targets.
#
#   V=1          show the commands
#   DEVELOPER=1  warnings are errors, banned functions, fuzz targets are built by `all`
#   SAN=1        AddressSanitizer and UndefinedBehaviorSanitizer, objects in build/san
#   GCOV=1       lines that are run are counted, objects in build/coverage
#   SAN=thread   ThreadSanitizer, objects in build/tsan
#   BUILD=DIR    objects and products go there
#   STRIP=       `make install` does not strip programs and shared libraries

.SUFFIXES .SECONDARY .DELETE_ON_ERROR:
.DEFAULT_GOAL := all

# ---- version: written once, in libsym.h -----------------------------------
version_part = $(shell sed -n 's/^\#define SYM_VERSION_$(1) //p' libsym/libsym.h)
VERSION_MAJOR := $(call version_part,MAJOR)
VERSION := $(VERSION_MAJOR).$(call version_part,MINOR).$(call version_part,PATCH)
ifneq ($(shell grep -c '^LIBSYM_$(VERSION_MAJOR)\.' libsym/libsym.map),$(shell grep -c '^LIBSYM_' libsym/libsym.map))
$(error libsym/libsym.map has a node of another major version than libsym.h)
endif

# ---- configuration ----------------------------------------------------------
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/etc,$(PREFIX)/etc)

# ccache answers for objects that were compiled before. It is for CI: elsewhere nobody asked for files in his home.
COMPILER_CACHE ?=
CLANG ?= clang
CLANG_FORMAT ?= clang-format
# With AddressSanitizer the compiler takes twice as long for -O2, and lines are all that is needed of -g.
CFLAGS ?= $(if $(GCOV),-O0 -g1,$(if $(filter 1,$(SAN)),-Og -g1,-O2 -g))
# Unit tests are half of what is compiled, and run for a moment.
TEST_CFLAGS := $(if $(SAN),,$(if $(filter -O2,$(CFLAGS)),-Og -g1))

BUILD := build
WARNINGS := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wwrite-strings -Wvla \
	-Wdeclaration-after-statement -Wshadow -Wundef -Wno-missing-field-initializers

ifdef DEVELOPER
# With sanitizers, and without optimization, the compiler sees less of what values can be, and warns of what cannot.
WARNINGS += $(if $(SAN)$(GCOV),,-Werror)
EXTRA_CFLAGS += -include libsym/base/banned.h
endif
# SAN=...: directory of the objects, sanitizers
SAN_1 := san address,undefined
SAN_thread := tsan thread
SAN_fuzz := fuzzing fuzzer-no-link,address,undefined
ifdef SAN
BUILD := build/$(word 1,$(SAN_$(SAN)))
CC := $(if $(filter fuzz,$(SAN)),$(CLANG),$(CC))
# As on ARM, where char has no sign, so that both kinds are tried.
EXTRA_CFLAGS += -funsigned-char
EXTRA_CFLAGS += -fsanitize=$(word 2,$(SAN_$(SAN))) -fno-sanitize-recover=all -fno-omit-frame-pointer
EXTRA_LDFLAGS += -fsanitize=$(word 2,$(SAN_$(SAN)))
endif

# GCOV=1: lines that are run are counted
ifdef GCOV
BUILD := build/coverage
EXTRA_CFLAGS += --coverage -fprofile-update=prefer-atomic
EXTRA_LDFLAGS += --coverage
endif

# Protections of what is built, checked by check-hardening. FORTIFY_SOURCE needs an optimiser, and hides from sanitizers
# what it finds itself.
MACHINE := $(shell $(CC) -dumpmachine)
HARDENING := -fstack-protector-strong $(if $(filter x86_64-% i386-% i486-% i586-% i686-%,$(MACHINE)),-fcf-protection) \
	$(if $(filter aarch64-%,$(MACHINE)),-mbranch-protection=standard) \
	$(if $(SAN),,$(if $(filter -O -O1 -O2 -O3 -Os,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDENING_LD := -Wl,-z,relro,-z,now,-z,noexecstack

ALL_CFLAGS = -std=gnu17 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. $(WARNINGS) $(CFLAGS) $(HARDENING) -fPIC -fvisibility=hidden \
	$(if $(GCOV),,-ffile-prefix-map=$(CURDIR)/=) $(EXTRA_CFLAGS) -MMD -MP
ALL_LDFLAGS = $(HARDENING_LD) $(LDFLAGS) $(EXTRA_LDFLAGS)

LIB_LIBS := -ldw -lelf -lxxhash -lmd -llzma -lz -lzstd -liberty
CLI_LIBS := -ljansson -lmd -lzstd -lm
SERVER_LIBS := -lmicrohttpd -lcurl -lcrypto -ljansson -lpthread
TEST_LIBS := -lcriterion
# Libraries that `make static` links in.
ARCHIVES := dw elf bz2 lzma z zstd xxhash jansson md
# In the unit tests tests/support/alloc_fail.c stands before these, and ending_fork.c before fork().
WRAP_ALLOCATIONS := $(foreach name,malloc calloc realloc reallocarray aligned_alloc posix_memalign strdup strndup,-Wl,--wrap=$(name)) -Wl,--wrap=fork

# mapgen/cli/failed_calls.c stands before these in dotnet-mapgen
FAILED_CALLS := malloc calloc realloc reallocarray aligned_alloc posix_memalign strdup strndup asprintf vasprintf mmap mmap64 pthread_create \
	open open64 openat64 fcntl64 syscall read write pread pread64 lseek64 fstatfs64 statfs64 fstatvfs64 fstat64 stat64 lstat64 fstatat64 statx access faccessat readlink readlinkat \
	__asprintf_chk __vasprintf_chk __open64_2 __realpath_chk realpath opendir fdopendir readdir64 fopen64 fdopen dup memfd_create socket connect getsockopt send recv poll unlink unlinkat
WRAP_CALLS := $(FAILED_CALLS:%=-Wl,--wrap=%)

say = $(if $(filter 1,$(V)),,@printf '  %-8s%s\n' $(1) $(2);)

# ---- sources ------------------------------------------------------------------
# Every .c below folders, at any depth
sources = $(sort $(shell find $(1) -name '*.c'))
objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
LIB_OBJECTS := $(call objects,$(filter-out libsym/bcc/% libsym/examples/%,$(call sources,libsym)))
BCC_OBJECTS := $(call objects,$(call sources,libsym/bcc))
CLI_OBJECTS := $(call objects,$(call sources,mapgen))
SERVER_OBJECTS := $(call objects,$(call sources,symsrv))
TEST_OBJECTS := $(call objects,$(filter-out tests/support/preload/% tests/support/sanitizers/% tests/support/coverage/%,$(call sources,tests/libsym tests/mapgen tests/support)))
SERVER_TEST_OBJECTS := $(call objects,$(call sources,tests/symsrv) tests/support/no_certificates.c)
# Tests link this in, without main(). The linker takes only the called parts of an archive.
CLI_ARCHIVE := $(BUILD)/tests/mapgen.a
SERVER_ARCHIVE := $(BUILD)/tests/symsrv.a
BCC_ARCHIVE := $(BUILD)/tests/libsym-bcc.a
FUZZ_SUPPORT := $(call objects,tests/support/perfmap_check.c tests/support/stack_text_run.c) $(CLI_ARCHIVE) $(SERVER_ARCHIVE) $(BCC_ARCHIVE)
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))

LIB_STATIC := $(BUILD)/libsym.a
LIB_INSTALLED := $(BUILD)/installed/libsym.a
OBJCOPY ?= objcopy
STRIP ?= strip
LIB_SHARED := $(BUILD)/libsym.so.$(VERSION)
BCC_SHARED := $(BUILD)/libsym-bcc.so.$(VERSION)
BCC_PRELOAD := $(BUILD)/libsym-bcc-preload.so
CLI := $(BUILD)/dotnet-mapgen
SERVER := $(BUILD)/symsrv-bin/symsrv
UNITS := $(BUILD)/tests/unit $(BUILD)/tests/unit-symsrv
REPLAY := $(BUILD)/fuzz/replay
BENCHES := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(sort $(wildcard tests/bench/bench_*.c)))
RACES := $(patsubst tests/races/%.c,$(BUILD)/races/%,$(sort $(wildcard tests/races/*.c)))
EXAMPLES := $(patsubst libsym/examples/%.c,$(BUILD)/examples/%,$(sort $(wildcard libsym/examples/*.c)))
PROGRAMS := $(CLI) $(SERVER)
MAN1 := $(wildcard mapgen/*.1 symsrv/*.1)
MAN3 := $(wildcard libsym/*.3 libsym/bcc/*.3)
COMPLETION := $(wildcard mapgen/*.bash)

## all: the library (static and shared) and the programs
all: $(LIB_STATIC) $(LIB_INSTALLED) $(LIB_SHARED) $(BCC_SHARED) $(BCC_PRELOAD) $(PROGRAMS) $(EXAMPLES) $(if $(DEVELOPER),$(REPLAY))

$(BUILD)/mapgen/command/bcc.o: EXTRA_CFLAGS += -DMAPGEN_LIBDIR='"$(LIBDIR)"'
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(COMPILER_CACHE) $(CC) $(ALL_CFLAGS) -c -o $@ $<

# Files that .incbin puts into them. A compiler cache does not see these.
$(call objects,$(shell grep -rl --include='*.c' '\.incbin' libsym mapgen)): override COMPILER_CACHE :=
$(BUILD)/mapgen/view/flame_page.o: mapgen/view/flame_page.html
$(BUILD)/mapgen/events/event_table.o: mapgen/events/native_events.txt

$(CLI_ARCHIVE): $(filter-out %/mapgen/main.o,$(CLI_OBJECTS))
$(SERVER_ARCHIVE): $(filter-out %/symsrv/symsrv.o,$(SERVER_OBJECTS))
$(BCC_ARCHIVE): $(filter-out %/preload.o,$(BCC_OBJECTS))
$(LIB_STATIC): $(LIB_OBJECTS)
$(LIB_STATIC) $(CLI_ARCHIVE) $(SERVER_ARCHIVE) $(BCC_ARCHIVE):
	@mkdir -p $(@D) && rm -f $@
	$(call say,AR,$@)$(AR) rcsD $@ $^

# For other programs, whose own functions may have any name: only the API's are to be seen.
$(LIB_INSTALLED): $(LIB_OBJECTS)
	@mkdir -p $(@D) && rm -f $@
	$(call say,AR,$@)$(CC) -r -nostdlib -o $(@D)/libsym.o $^
	@$(OBJCOPY) --localize-hidden $(@D)/libsym.o && $(AR) rcsD $@ $(@D)/libsym.o

$(LIB_SHARED): $(LIB_OBJECTS) libsym/libsym.map
	$(call say,LD,$@)$(CC) -shared -Wl,-soname,libsym.so.$(VERSION_MAJOR) \
		-Wl,--version-script=libsym/libsym.map -Wl,--no-undefined-version \
		$(ALL_LDFLAGS) -o $@ $(LIB_OBJECTS) $(LIB_LIBS)
	@ln -sf libsym.so.$(VERSION) $(BUILD)/libsym.so.$(VERSION_MAJOR)
	@ln -sf libsym.so.$(VERSION_MAJOR) $(BUILD)/libsym.so

# libbcc's symbol functions; libsym is inside, libstdc++ reads C++ names as it does for libbcc.
BCC_LIBS := $(LIB_LIBS) -lstdc++ -lpthread
$(BCC_SHARED): $(filter-out %/preload.o,$(BCC_OBJECTS)) $(LIB_STATIC) libsym/bcc/libsym-bcc.map
	$(call say,LD,$@)$(CC) -shared -Wl,-soname,libsym-bcc.so.$(VERSION_MAJOR) -Wl,-Bsymbolic-functions \
		-Wl,--version-script=libsym/bcc/libsym-bcc.map -Wl,--no-undefined-version \
		$(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(BCC_LIBS)
	@ln -sf libsym-bcc.so.$(VERSION) $(BUILD)/libsym-bcc.so.$(VERSION_MAJOR)
	@ln -sf libsym-bcc.so.$(VERSION_MAJOR) $(BUILD)/libsym-bcc.so

$(BCC_PRELOAD): $(BCC_OBJECTS) $(LIB_STATIC) libsym/bcc/libsym-bcc-preload.map
	$(call say,LD,$@)$(CC) -shared -Wl,-soname,libsym-bcc-preload.so -Wl,-Bsymbolic-functions \
		-Wl,--version-script=libsym/bcc/libsym-bcc-preload.map -Wl,--no-undefined-version \
		$(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(BCC_LIBS)

# Linked into every program with SAN=1
SAN_OBJECTS := $(if $(filter 1,$(SAN)),$(call objects,$(call sources,tests/support/sanitizers)))
$(PROGRAMS) $(UNITS) $(REPLAY) $(BUILD)/tests/long/damage: $(SAN_OBJECTS)

# With GCOV=1, so that children that end without exit() count as well
COUNT_OBJECTS := $(if $(GCOV),$(call objects,$(call sources,tests/support/coverage)))
ENDS := -Wl,--wrap=_exit -Wl,--wrap=dwarf_worker_stop
WRAP_ENDS = $(if $(filter $(COUNT_OBJECTS),$^),$(ENDS))
$(PROGRAMS) $(UNITS) $(REPLAY): $(COUNT_OBJECTS)

# LINK_FLAGS and LINK_LIBS are set for a target beside its rule.
define link
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(or $(LINK_PIE),-pie) $(ALL_LDFLAGS) $(LINK_FLAGS) $(WRAP_ENDS) -o $@ $^ $(LINK_ARCHIVES) $(LIB_LIBS) $(LINK_LIBS)
endef

## static: build/static/dotnet-mapgen, which needs no shared libraries but the C library's
STATIC_CLI := $(BUILD)/static/dotnet-mapgen
static: $(STATIC_CLI)
$(STATIC_CLI): LINK_ARCHIVES = -Wl,-Bstatic $(ARCHIVES:%=-l%) -Wl,-Bdynamic,--as-needed
$(CLI) $(STATIC_CLI): LINK_FLAGS = $(WRAP_CALLS)
$(CLI) $(STATIC_CLI): LINK_LIBS = $(CLI_LIBS)
$(CLI) $(STATIC_CLI): $(CLI_OBJECTS) $(LIB_STATIC)
	$(link)

# The same program with another main() around it: damaged copies of files (tests/long/damage.c)
DAMAGE := $(BUILD)/tests/long/damage
$(BUILD)/tests/long/mapgen_main.o: mapgen/main.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(COMPILER_CACHE) $(CC) $(ALL_CFLAGS) -Wno-missing-prototypes -Dmain=mapgen_main -c -o $@ $<
$(DAMAGE): LINK_FLAGS = $(WRAP_CALLS)
$(DAMAGE): LINK_LIBS = $(CLI_LIBS)
$(DAMAGE): $(BUILD)/tests/long/damage.o $(BUILD)/tests/long/mapgen_main.o $(CLI_ARCHIVE) $(LIB_STATIC)
	$(link)

$(SERVER): LINK_LIBS = $(SERVER_LIBS)
$(SERVER): $(SERVER_OBJECTS) $(LIB_STATIC)
	$(link)

# Criterion's assertions declare variables in the middle of a block.
$(TEST_OBJECTS) $(SERVER_TEST_OBJECTS): WARNINGS += -Wno-declaration-after-statement
$(TEST_OBJECTS) $(SERVER_TEST_OBJECTS): EXTRA_CFLAGS += $(TEST_CFLAGS)

$(BUILD)/tests/unit: LINK_FLAGS = $(WRAP_ALLOCATIONS)
# At a fixed address no process has to relocate what AddressSanitizer knows of each variable, 400,000 words.
$(UNITS): LINK_PIE = $(if $(filter 1,$(SAN)),-no-pie)
# Each unit test is a process of its own, which loads all that its program is linked with.
$(BUILD)/tests/unit: LINK_LIBS = $(CLI_LIBS) -lcrypto $(TEST_LIBS)
$(BUILD)/tests/unit-symsrv: LINK_LIBS = $(SERVER_LIBS) $(TEST_LIBS)
$(BUILD)/tests/unit: $(TEST_OBJECTS) $(CLI_ARCHIVE) $(BCC_ARCHIVE) $(LIB_STATIC)
	$(link)
$(BUILD)/tests/unit-symsrv: $(SERVER_TEST_OBJECTS) $(SERVER_ARCHIVE) $(LIB_STATIC)
	$(link)

# A list of all targets, and each with its name instead of libFuzzer's. A new target makes the directory newer.
$(BUILD)/tests/fuzz/replay.o: EXTRA_CFLAGS += -D'FUZZ_TARGETS=$(foreach name,$(FUZZ_NAMES),TARGET($(name)))'
$(BUILD)/tests/fuzz/replay.o: tests/fuzz
$(BUILD)/fuzz/objects/%.o: tests/fuzz/fuzz_%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(COMPILER_CACHE) $(CC) $(ALL_CFLAGS) -DLLVMFuzzerTestOneInput=fuzz_$* -c -o $@ $<
$(REPLAY) $(BUILD)/fuzz_%: LINK_LIBS = -ljansson -lzstd -lcrypto -lpthread -lm
$(REPLAY): $(FUZZ_NAMES:%=$(BUILD)/fuzz/objects/%.o) $(BUILD)/tests/fuzz/replay.o $(FUZZ_SUPPORT) $(LIB_STATIC)
	$(link)
$(BUILD)/fuzz_%: LINK_FLAGS = -fsanitize=fuzzer
$(BUILD)/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(FUZZ_SUPPORT) $(LIB_STATIC)
	$(link)

BENCH_LIBS_bench_unwind = -ldw -lelf
$(BUILD)/bench/%: LINK_LIBS = $(BENCH_LIBS_$*) -ldl
$(BUILD)/bench/%: $(BUILD)/tests/bench/%.o $(LIB_STATIC)
	$(link)
$(BUILD)/examples/%: $(BUILD)/libsym/examples/%.o $(LIB_STATIC)
	$(link)
$(BUILD)/races/race_bcc_calls: LINK_LIBS = -lstdc++ -lpthread
$(BUILD)/races/race_bcc_calls: LINK_ARCHIVES = $(LIB_STATIC)
$(BUILD)/races/race_bcc_calls: $(BCC_ARCHIVE)
$(BUILD)/races/%: $(BUILD)/tests/races/%.o $(LIB_STATIC)
	$(link)

## profiler: the example that profiles with BPF, in build/examples (clang, libbpf-dev)
PROFILER := $(BUILD)/examples/stack_profiler
BPF_DIRECTORY := libsym/examples/bpf
BPF_OBJECT := $(BUILD)/$(BPF_DIRECTORY)/stack_counts.bpf.o
profiler: $(PROFILER)
$(BPF_OBJECT): $(BPF_DIRECTORY)/stack_counts.bpf.c $(BPF_DIRECTORY)/stack_counts.h
	@mkdir -p $(@D)
	$(call say,BPF,$<)$(CLANG) -O2 -g -target bpf -Wall -Werror -I. -I/usr/include/$(shell $(CC) -print-multiarch) -c -o $@ $<
$(BUILD)/$(BPF_DIRECTORY)/stack_profiler.o: EXTRA_CFLAGS += -DBPF_OBJECT_PATH='"$(BPF_OBJECT)"'
$(BUILD)/$(BPF_DIRECTORY)/stack_profiler.o: $(BPF_OBJECT)
$(PROFILER): LINK_LIBS = -lbpf
$(PROFILER): $(BUILD)/$(BPF_DIRECTORY)/stack_profiler.o $(LIB_STATIC)
	$(link)

-include $(shell find $(BUILD) -name '*.d' -type f 2>/dev/null)

# ---- tests --------------------------------------------------------------------
# Every check prints `ok NAME`, `FAILED NAME: why` or `skipped NAME: why`, a line each.
META_CHECKS := check-headers check-layers check-abi check-docs check-fixtures check-style check-install check-hardening check-security
# Lanes of all-checks.sh. After check-build there is nothing left that two of them would build at once.
CHECKS := check-build -- check-live-tools -- check-live-runtime -- check-unit check-fuzz check-races check-failures $(META_CHECKS) check-native -- check-symsrv
LIVE_NEEDS := $(BUILD)/bench/bench_r2r
# For the Python tests (tests/support/runner.py): most of them wait for something for most of their time.
TEST_OPTIONS ?= -j 2 --slowest 10
# Each word in quotes, or the shell would take ONLY='a|b' for two commands.
quote := '
ONLY_WORDS = $(foreach word,$(subst $(quote),,$(ONLY)),'$(word)')

## check: every test: unit, fuzz replay, the tree itself, live .NET processes; ends with the counts
check:
	+@MAKE='$(MAKE)' tests/meta/all-checks.sh $(CHECKS)

list-checks:
	@echo $(CHECKS)
check-build: all $(UNITS) $(REPLAY) $(RACES) $(LIVE_NEEDS)
	@echo 'ok build'

## check-unit: unit tests (FILTER='suite/test' for some)
check-unit: $(UNITS) $(PROGRAMS) $(BCC_SHARED) $(BCC_PRELOAD)
	@python3 tests/support/run_units.py $(if $(FILTER),--filter '$(FILTER)') $(UNITS)

## check-fuzz: every fuzz target over its corpus in fixtures/corpus
check-fuzz: $(REPLAY)
	@tests/meta/replay-corpus.sh $(REPLAY) $(FUZZ_NAMES)

## check-native: names of native code against readelf, eu-addr2line, gdb (ONLY='name name' for some)
check-native: $(CLI) $(BCC_SHARED) $(BCC_PRELOAD) $(EXAMPLES)
	@python3 tests/native/check_native.py --build $(BUILD) $(TEST_OPTIONS) $(ONLY_WORDS)

## check-races: threads against bad writers, in plain programs
check-races: $(RACES)
	@status=0; for race in $(RACES); do timeout 600 $$race || status=1; done; exit $$status

## check-live: real .NET processes, perf, BCC (ONLY='name name' for some)
check-live: all $(LIVE_NEEDS)
	@python3 tests/dotnet/live_tests.py --build $(BUILD) $(TEST_OPTIONS) $(ONLY_WORDS)
## check-live-runtime: what is known of a runtime; check-live-tools: what tools make of it
check-live-%: all $(LIVE_NEEDS)
	@python3 tests/dotnet/live_tests.py --build $(BUILD) --part $* $(TEST_OPTIONS) $(ONLY_WORDS)

## check-symsrv: the server with hostile upstreams, many clients, crashes, real debuginfod (ONLY='name name' for some)
check-symsrv: $(SERVER)
	@python3 tests/symsrv/check_symsrv.py --program $(SERVER) $(TEST_OPTIONS) $(ONLY_WORDS)

## check-failures: calls of the C library that fail, one for each of some places in each command (ONLY='name name' for some)
check-failures: $(CLI)
	@timeout 1200 python3 tests/long/failures.py --build $(BUILD) --quick $(ONLY_WORDS)

## check-long: every place where a call can fail, live tests of over a minute, processes that come and go, what a hostile one may cost, stops under load, Ceph, damaged copies, a bare root; ends with the counts; takes 2 hours
LONG_CHECKS := check-every-failure check-live-long check-soak check-budgets check-stops check-symsrv-long check-ceph check-damage-san check-bare
check-long: all
	+@LANE_SECONDS=$(or $(LANE_SECONDS),28800) MAKE='$(MAKE)' tests/meta/all-checks.sh $(LONG_CHECKS)
check-every-failure: $(CLI)
	@python3 tests/long/failures.py --build $(BUILD)
check-soak check-budgets: check-%: $(CLI)
	@python3 tests/long/$*.py --build $(BUILD)
check-stops: $(SERVER)
	@STOPS=$(or $(STOPS),3000) python3 tests/symsrv/check_symsrv.py --program $(SERVER) stop_under_load
check-symsrv-long: $(SERVER) $(CLI)
	@python3 tests/symsrv/check_symsrv.py --program $(SERVER) --long fault_of_a_real_store eu_addr2line kill_9 slow_clients damaged_debug_information
check-ceph: $(SERVER)
	@python3 tests/symsrv/check_symsrv.py --program $(SERVER) --long --store ceph object_store_behind fault_of_a_real_store
check-damage-san:
	@$(MAKE) SAN=1 check-damage

## check-bare: ./bootstrap demo and ./bootstrap check in a Debian 12 that has nothing, made by mmdebstrap (ONLY=demo for one)
check-bare:
	@python3 tests/long/bare_root.py $(ONLY_WORDS)

## check-damage: damaged copies of each kind of file through a command; SAN=1 finds most (COPIES=10000 of each, ONLY='name name' for some)
COPIES := 10000
check-damage: $(DAMAGE) $(CLI)
	@python3 tests/long/check_damage.py --build $(BUILD) --count $(COPIES) $(ONLY_WORDS)

## check-matrix: every .NET version in every shape, built and profiled; takes long (ONLY='10.0 composite' for some)
check-matrix: all
	@python3 tests/dotnet/matrix.py --build $(BUILD) $(if $(ONLY),'$(ONLY)')

## check-maps: our r2rmaps against those of crossgen2 10 and 9 in every way of compiling (ONLY='arm64' for some)
check-maps: all
	@python3 tests/dotnet/crossgen2_maps.py --build $(BUILD) $(if $(ONLY),'$(ONLY)')

## check-arm: unit tests and .NET 10 (RUNTIME=11.0.0: that) on ARM64, cross-compiled, on an emulated machine (ONLY=stack: some tests); takes long
check-arm:
	@python3 tests/arm64/check_arm64.py $(if $(RUNTIME),--runtime $(RUNTIME)) $(if $(ONLY),--only '$(ONLY)')

## check-headers: each header compiles alone; libsym.h as C of 1989 and 2011, C++ of 1998 and 2017, without padding
## check-layers: includes point to lower layers only
## check-abi: exported names = names declared with SYM_API = names in the version scripts, node by node
## check-docs: --help = man page = completion; what README names exists
## check-fixtures: every fixture has its line and digest in fixtures/MANIFEST.md
## check-style: format, lengths, unique file names, nothing of one machine
## check-install: installs into a scratch directory, builds C and C++ programs against it
## check-hardening: readelf sees RELRO, BIND_NOW, PIE, stack protector, FORTIFY_SOURCE in what was built
## check-security: the tests that SECURITY.md names exist
check-abi check-docs check-install check-hardening: all
$(META_CHECKS):
	@CC='$(CC)' CXX='$(CXX)' BUILD='$(BUILD)' MAKE='$(MAKE)' tests/meta/$@.sh

## check-circles: files that call each other in circles, by the symbols of their object files
check-circles: all
	@python3 tests/meta/count_circles.py --most 0 $(BUILD)

## check-san: unit tests and fuzz replay under AddressSanitizer and UndefinedBehaviorSanitizer
check-san:
	@CC='$(CC)' tests/meta/check-findings.sh
	@tests/meta/findings.sh sanitizers build/san/log $(MAKE) SAN=1 check-unit check-fuzz
## check-tsan: the same threads under ThreadSanitizer (Criterion does not start under it)
check-tsan:
	@tests/meta/findings.sh thread-sanitizer build/tsan/log setarch -R $(MAKE) SAN=thread check-races
## check-valgrind: unit tests under valgrind
check-valgrind: $(UNITS) $(PROGRAMS) $(BCC_SHARED) $(BCC_PRELOAD)
	@tests/meta/findings.sh valgrind build/valgrind valgrind -q --trace-children=yes --leak-check=full \
		--errors-for-leak-kinds=definite --show-leak-kinds=definite --log-file=build/valgrind/%p $(firstword $(UNITS)) --jobs 2

## coverage: share of the lines that unit tests, fuzz replay, native and symsrv tests run, for each folder (gcov, in build/coverage)
coverage:
	@$(MAKE) GCOV=1 count-lines
count-lines: all $(UNITS) $(REPLAY)
	@find $(BUILD) -name '*.gcda' -delete
	-@$(MAKE) -k GCOV=1 check-unit check-fuzz > $(BUILD)/log 2>&1
	@chmod -R a+rwX $(BUILD) # some programs run as other users, and write their counts as well
	-@$(MAKE) -k GCOV=1 check-failures check-native check-symsrv >> $(BUILD)/log 2>&1
	@python3 tests/meta/coverage.py $(BUILD)

## fuzz: coverage-guided fuzzers in build/fuzzing (clang); FUZZ_SECONDS=60 also runs each
fuzz:
	@$(MAKE) SAN=fuzz libfuzzers
	@$(if $(FUZZ_SECONDS),tests/meta/fuzz-for.sh $(FUZZ_SECONDS) build/fuzzing)
libfuzzers: $(FUZZ_NAMES:%=$(BUILD)/fuzz_%)

## bench: figures against peers, one line each
bench: all $(BENCHES)
	@tests/bench/bench.sh $(BUILD)

## seeds: makes the built seeds of fixtures/corpus again
SEED_SOURCES := tests/fuzz/write_seeds.c $(addprefix tests/support/,r2r_sample.c r2r_builder.c pe_builder.c metadata_builder.c identity_samples.c go_table.c pdb_builder.c)
seeds: $(BUILD)/fuzz/write_seeds
	@mkdir -p $(addprefix fixtures/corpus/,pe metadata r2r method_name csharp_name identity gopclntab jit_debug inline_tree)
	$(BUILD)/fuzz/write_seeds fixtures/corpus
$(BUILD)/fuzz/write_seeds: $(call objects,$(SEED_SOURCES)) $(LIB_STATIC)
	$(link)

# ---- people ---------------------------------------------------------------------
## demo: names the frames of a live .NET process, before and after
demo: $(CLI)
	@python3 tests/dotnet/demo.py --build $(BUILD)

## format: clang-format over the sources
format:
	$(CLANG_FORMAT) -i $(shell find libsym mapgen symsrv tests -name '*.[ch]' 2>/dev/null)

# MODE:FILE:PLACE of everything that is installed as it is.
INSTALLED = 644:libsym/bcc/libsym-bcc.h:$(INCLUDEDIR)/libsym/libsym-bcc.h 755:$(BCC_PRELOAD):$(LIBDIR)/libsym-bcc-preload.so \
	755:$(BCC_SHARED):$(LIBDIR)/libsym-bcc.so.$(VERSION) 644:$(LIB_INSTALLED):$(LIBDIR)/libsym.a \
	755:$(LIB_SHARED):$(LIBDIR)/libsym.so.$(VERSION) 644:$(COMPLETION):$(BASHCOMPDIR)/dotnet-mapgen \
	$(foreach file,libsym/libsym.h $(wildcard libsym/sym_*.h),644:$(file):$(INCLUDEDIR)/$(file)) \
	$(foreach file,$(PROGRAMS),755:$(file):$(BINDIR)/$(notdir $(file))) \
	$(foreach file,$(MAN1),644:$(file):$(MANDIR)/man1/$(notdir $(file))) \
	$(foreach file,$(MAN3),644:$(file):$(MANDIR)/man3/$(notdir $(file))) 644:symsrv/symsrv.8:$(MANDIR)/man8/symsrv.8
LINKED = $(foreach name,libsym libsym-bcc,$(LIBDIR)/$(name).so.$(VERSION_MAJOR) $(LIBDIR)/$(name).so)
PKG_CONFIG := $(wildcard libsym/*.pc.in libsym/bcc/*.pc.in)

## install: library, header, pkg-config file, programs, manuals, completion (PREFIX=/usr/local DESTDIR=)
install: all
	@for row in $(INSTALLED); do file=$${row#*:}; strip=; [ $${row%%:*} != 755 ] || strip='$(if $(STRIP),-s --strip-program=$(STRIP))'; install $$strip -D -m $${row%%:*} $${file%:*} $(DESTDIR)$${file#*:} || exit 1; done
	@for link in $(LINKED); do name=$${link##*/}; ln -sf $${name%%.*}.so.$(VERSION) $(DESTDIR)$$link; done
	@mkdir -p $(DESTDIR)$(LIBDIR)/pkgconfig
	@for file in $(PKG_CONFIG); do name=$${file##*/}; sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' $$file \
		> $(DESTDIR)$(LIBDIR)/pkgconfig/$${name%.in} || exit 1; done
	@$(MAKE) -s install-units
# The units of systemd, and the configuration that the service reads, unless there is one.
install-units:
	@install -D -m 644 symsrv/symsrv.socket $(DESTDIR)$(UNITDIR)/symsrv.socket
	@sed -e 's|@BINDIR@|$(BINDIR)|' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|' symsrv/symsrv.service.in > $(DESTDIR)$(UNITDIR)/symsrv.service
	@[ -e $(DESTDIR)$(SYSCONFDIR)/symsrv.conf ] || install -D -m 644 symsrv/symsrv.conf $(DESTDIR)$(SYSCONFDIR)/symsrv.conf
## uninstall: removes what install put there
uninstall:
	rm -f $(addprefix $(DESTDIR),$(foreach row,$(INSTALLED),$(lastword $(subst :, ,$(row)))) $(LINKED) $(patsubst %.in,$(LIBDIR)/pkgconfig/%,$(notdir $(PKG_CONFIG))) $(UNITDIR)/symsrv.service $(UNITDIR)/symsrv.socket)
	@! cmp -s symsrv/symsrv.conf $(DESTDIR)$(SYSCONFDIR)/symsrv.conf || rm -f $(DESTDIR)$(SYSCONFDIR)/symsrv.conf
	-rmdir $(DESTDIR)$(INCLUDEDIR)/libsym

## dist: source archive in build/
dist: all
	git archive --format=tar.gz --prefix=libsym-$(VERSION)/ -o build/libsym-$(VERSION).tar.gz HEAD

## help: this list
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)
## clean: remove everything that was built
clean:
	rm -rf build

.PHONY: all static profiler check list-checks check-build check-unit check-fuzz check-races check-failures check-long $(filter-out check-live-long,$(LONG_CHECKS)) check-damage check-circles check-native check-symsrv check-live check-matrix check-maps check-arm check-san check-tsan check-valgrind $(META_CHECKS) \
	coverage count-lines fuzz libfuzzers seeds bench demo format install install-units uninstall dist help clean
