# SPDX-License-Identifier: MIT
# The whole build. `make help` lists the targets.
#
#   V=1          show the commands
#   DEVELOPER=1  warnings are errors, banned functions, fuzz targets are built by `all`
#   SAN=1        AddressSanitizer and UndefinedBehaviorSanitizer, objects in build/san
#   SAN=thread   ThreadSanitizer, objects in build/tsan
#   BUILD=DIR    objects and products go there
#   STATIC=      dotnet-mapgen is linked with shared libraries only

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

CLANG ?= clang
CLANG_FORMAT ?= clang-format
# With AddressSanitizer the compiler takes twice as long for -O2, and lines are all that is needed of -g.
CFLAGS ?= $(if $(filter 1,$(SAN)),-O1 -g1,-O2 -g)

BUILD := build
WARNINGS := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wwrite-strings -Wvla \
	-Wdeclaration-after-statement -Wshadow -Wundef -Wno-missing-field-initializers

ifdef DEVELOPER
# With sanitizers the compiler sees less of what values can be, and warns of what cannot.
WARNINGS += $(if $(SAN),,-Werror)
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

ALL_CFLAGS = -std=gnu17 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. $(WARNINGS) $(CFLAGS) -fPIC -fvisibility=hidden \
	-ffile-prefix-map=$(CURDIR)/= $(EXTRA_CFLAGS) -MMD -MP
ALL_LDFLAGS = $(LDFLAGS) $(EXTRA_LDFLAGS)

LIB_LIBS := -ldw -lelf -lxxhash -lmd -llzma -lz -lzstd -liberty
CLI_LIBS := -ljansson -lxxhash -lzstd
SERVER_LIBS := -lmicrohttpd -lcurl -lcrypto -ljansson -lpthread
TEST_LIBS := -lcriterion
comma := ,
# To load nine libraries takes 0.6 ms, half of what one name in a process of 200 images takes otherwise. So their archives
# are linked in where all of them are there; with STATIC= they stay shared, which is what a distribution wants (README.md).
STATIC := dw elf bz2 lzma z zstd xxhash jansson md
ARCHIVES := $(foreach name,$(STATIC),$(shell $(CC) -print-file-name=lib$(name).a))
CLI_ARCHIVES := $(if $(filter-out /%,$(ARCHIVES)),,$(if $(STATIC),-Wl$(comma)-Bstatic $(STATIC:%=-l%) -Wl$(comma)-Bdynamic$(comma)--as-needed))
# tests/support/alloc_fail.c stands before these in the unit tests
WRAP_ALLOCATIONS := $(foreach name,malloc calloc realloc reallocarray aligned_alloc posix_memalign strdup strndup,-Wl,--wrap=$(name))

say = $(if $(filter 1,$(V)),,@printf '  %-8s%s\n' $(1) $(2);)

# ---- sources ------------------------------------------------------------------
objects = $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard $(1))))
LIB_OBJECTS := $(call objects,libsym/*.c libsym/base/*.c libsym/format/*.c libsym/source/*.c libsym/clr/*.c)
CLI_OBJECTS := $(call objects,mapgen/*.c mapgen/profile/*.c)
SERVER_OBJECTS := $(call objects,symsrv/*.c)
PROFILE_OBJECTS := $(call objects,mapgen/profile/*.c $(patsubst %,mapgen/%.c,message standin_elf standin_native standin_place buildid_dir undo_record debug_places progress work_directory call_site))
TEST_OBJECTS := $(call objects,tests/libsym/*.c tests/libsym/*/*.c tests/mapgen/*.c tests/mapgen/*/*.c tests/support/*.c)
SERVER_TEST_OBJECTS := $(call objects,tests/symsrv/*.c)
FUZZ_SUPPORT := $(call objects,libsym/bcc/ld_cache.c mapgen/profile/*.c mapgen/message.c tests/support/perfmap_check.c tests/support/stack_text_run.c \
	$(patsubst %,symsrv/%.c,route key ssqp debuginfod percent http_text answer hops metrics store_file digest settings upstreams log net_rules breaker))
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))

LIB_STATIC := $(BUILD)/libsym.a
LIB_INSTALLED := $(BUILD)/installed/libsym.a
OBJCOPY ?= objcopy
LIB_SHARED := $(BUILD)/libsym.so.$(VERSION)
BCC_OBJECTS := $(call objects,libsym/bcc/*.c)
BCC_SHARED := $(BUILD)/libsym-bcc.so.$(VERSION)
BCC_PRELOAD := $(BUILD)/libsym-bcc-preload.so
CLI := $(BUILD)/dotnet-mapgen
SERVER := $(BUILD)/symsrv-bin/symsrv
UNITS := $(BUILD)/tests/unit $(BUILD)/tests/unit-symsrv
FUZZERS := $(FUZZ_NAMES:%=$(BUILD)/fuzz/replay_%)
BENCHES := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(sort $(wildcard tests/bench/bench_*.c)))
RACES := $(patsubst tests/races/%.c,$(BUILD)/races/%,$(sort $(wildcard tests/races/*.c)))
EXAMPLES := $(patsubst libsym/examples/%.c,$(BUILD)/examples/%,$(sort $(wildcard libsym/examples/*.c)))
PROGRAMS := $(CLI) $(SERVER)
MAN1 := $(wildcard mapgen/*.1 symsrv/*.1)
MAN3 := $(wildcard libsym/*.3 libsym/bcc/*.3)
COMPLETION := $(wildcard mapgen/*.bash)

## all: the library (static and shared) and the programs
all: $(LIB_STATIC) $(LIB_INSTALLED) $(LIB_SHARED) $(BCC_SHARED) $(BCC_PRELOAD) $(PROGRAMS) $(EXAMPLES) $(if $(DEVELOPER),$(FUZZERS))

$(BUILD)/mapgen/bcc_command.o: EXTRA_CFLAGS += -DMAPGEN_LIBDIR='"$(LIBDIR)"'
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(LIB_STATIC): $(LIB_OBJECTS)
	@rm -f $@
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

# LINK_FLAGS and LINK_LIBS are set for a target beside its rule.
define link
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) $(LINK_FLAGS) -o $@ $^ $(LINK_ARCHIVES) $(LIB_LIBS) $(LINK_LIBS)
endef

$(CLI): LINK_LIBS = $(CLI_LIBS)
$(CLI): LINK_ARCHIVES = $(CLI_ARCHIVES)
$(CLI): $(CLI_OBJECTS) $(LIB_STATIC)
	$(link)

$(SERVER): LINK_LIBS = $(SERVER_LIBS)
$(SERVER): $(SERVER_OBJECTS) $(LIB_STATIC)
	$(link)

# Criterion's assertions declare variables in the middle of a block.
$(TEST_OBJECTS) $(SERVER_TEST_OBJECTS): WARNINGS += -Wno-declaration-after-statement

$(BUILD)/tests/unit: LINK_FLAGS = $(WRAP_ALLOCATIONS)
$(UNITS): LINK_LIBS = $(CLI_LIBS) $(SERVER_LIBS) $(TEST_LIBS)
$(BUILD)/tests/unit: $(TEST_OBJECTS) $(PROFILE_OBJECTS) $(LIB_STATIC)
	$(link)
$(BUILD)/tests/unit-symsrv: $(SERVER_TEST_OBJECTS) $(filter-out %/symsrv.o,$(SERVER_OBJECTS)) $(LIB_STATIC)
	$(link)

$(BUILD)/fuzz/replay_% $(BUILD)/fuzz_%: LINK_LIBS = -lzstd -lcrypto -lpthread
$(BUILD)/fuzz/replay_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/replay.o $(FUZZ_SUPPORT) $(LIB_STATIC)
	$(link)
$(BUILD)/fuzz_%: LINK_FLAGS = -fsanitize=fuzzer
$(BUILD)/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(FUZZ_SUPPORT) $(LIB_STATIC)
	$(link)

$(BUILD)/bench/%: LINK_LIBS = $(BENCH_LIBS_$*) -ldl
$(BUILD)/bench/%: $(BUILD)/tests/bench/%.o $(LIB_STATIC)
	$(link)
$(BUILD)/examples/%: $(BUILD)/libsym/examples/%.o $(LIB_STATIC)
	$(link)
$(BUILD)/races/race_bcc_calls: LINK_LIBS = -lstdc++ -lpthread
$(BUILD)/races/race_bcc_calls: LINK_ARCHIVES = $(LIB_STATIC)
$(BUILD)/races/race_bcc_calls: $(filter-out %/preload.o,$(BCC_OBJECTS))
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
META_CHECKS := check-headers check-layers check-abi check-docs check-fixtures check-style check-install
# Lanes of all-checks.sh. After check-build there is nothing left that two of them would build at once.
CHECKS := check-build -- check-live-tools -- check-live-runtime -- check-unit check-fuzz check-races $(META_CHECKS) check-native check-symsrv
LIVE_NEEDS := $(BUILD)/bench/bench_r2r

## check: every test: unit, fuzz replay, the tree itself, live .NET processes; ends with the counts
check:
	+@MAKE='$(MAKE)' tests/meta/all-checks.sh $(CHECKS)

list-checks:
	@echo $(CHECKS)
check-build: all $(UNITS) $(FUZZERS) $(RACES) $(LIVE_NEEDS)
	@echo 'ok build'

# Each of Criterion's processes maps memory of the first one over whatever it has at that address: the
# code of the tests, when the kernel chose its place at random.
FIXED_LAYOUT := setarch -R
## check-unit: unit tests (FILTER='suite/test' for some)
check-unit: $(UNITS) $(PROGRAMS) $(BCC_SHARED) $(BCC_PRELOAD)
	@status=0; for unit in $(UNITS); do $(FIXED_LAYOUT) $$unit --timeout 300 $(if $(FILTER),--filter '$(FILTER)') || status=1; done; exit $$status

## check-fuzz: every fuzz target over its corpus in fixtures/corpus
check-fuzz: $(FUZZERS)
	@tests/meta/replay-corpus.sh $(FUZZERS)

## check-native: names of native code against readelf, eu-addr2line, gdb (ONLY='name name' for some)
check-native: $(CLI) $(BCC_SHARED) $(BCC_PRELOAD) $(EXAMPLES)
	@timeout 1200 python3 tests/native/check_native.py --build $(BUILD) $(ONLY)

## check-races: threads against bad writers, in plain programs
check-races: $(RACES)
	@status=0; for race in $(RACES); do timeout 600 $$race || status=1; done; exit $$status

## check-live: real .NET processes, perf, BCC (ONLY='name name' for some)
check-live: all $(LIVE_NEEDS)
	@python3 tests/dotnet/live_tests.py --build $(BUILD) $(ONLY)
## check-live-runtime: what is known of a runtime; check-live-tools: what tools make of it
check-live-%: all $(LIVE_NEEDS)
	@python3 tests/dotnet/live_tests.py --build $(BUILD) --part $* $(ONLY)

## check-symsrv: the server with hostile upstreams, many clients, crashes, real debuginfod (ONLY='name name' for some)
check-symsrv: $(SERVER)
	@timeout 1200 python3 tests/symsrv/check_symsrv.py --program $(SERVER) $(ONLY)

## check-matrix: every .NET version in every shape, built and profiled; takes long (ONLY='10.0 composite' for some)
check-matrix: all
	@python3 tests/dotnet/matrix.py --build $(BUILD) $(if $(ONLY),'$(ONLY)')

## check-maps: our r2rmaps against those of crossgen2 10 and 9 in every way of compiling (ONLY='arm64' for some)
check-maps: all
	@python3 tests/dotnet/crossgen2_maps.py --build $(BUILD) $(if $(ONLY),'$(ONLY)')

## check-arm: unit tests and .NET 10 (RUNTIME=11.0.0: that) on ARM64, cross-compiled, on an emulated machine; takes long
check-arm:
	@python3 tests/arm64/check_arm64.py $(if $(RUNTIME),--runtime $(RUNTIME))

## check-headers: each header compiles alone; libsym.h as C of 1989 and 2011, C++ of 1998 and 2017, without padding
## check-layers: includes point to lower layers only
## check-abi: exported names of libsym.so = functions of libsym.h and its parts
## check-docs: --help = man page = completion; what README names exists
## check-fixtures: every fixture has its line and digest in fixtures/MANIFEST.md
## check-style: format, lengths, unique file names, nothing of one machine
## check-install: installs into a scratch directory, builds C and C++ programs against it
check-abi check-docs check-install: all
$(META_CHECKS):
	@CC='$(CC)' CXX='$(CXX)' BUILD='$(BUILD)' MAKE='$(MAKE)' tests/meta/$@.sh

## check-san: unit tests and fuzz replay under AddressSanitizer and UndefinedBehaviorSanitizer
check-san:
	@tests/meta/findings.sh sanitizers build/san/log $(MAKE) SAN=1 check-unit check-fuzz
## check-tsan: the same threads under ThreadSanitizer (Criterion does not start under it)
check-tsan:
	@tests/meta/findings.sh thread-sanitizer build/tsan/log $(FIXED_LAYOUT) $(MAKE) SAN=thread check-races
## check-valgrind: unit tests under valgrind
check-valgrind: $(UNITS) $(PROGRAMS) $(BCC_SHARED) $(BCC_PRELOAD)
	@tests/meta/findings.sh valgrind build/valgrind valgrind -q --trace-children=yes --leak-check=full \
		--errors-for-leak-kinds=definite --show-leak-kinds=definite --log-file=build/valgrind/%p $(firstword $(UNITS)) --jobs 2

## fuzz: coverage-guided fuzzers in build/fuzzing (clang); FUZZ_SECONDS=60 also runs each
fuzz:
	@$(MAKE) SAN=fuzz libfuzzers
	@$(if $(FUZZ_SECONDS),tests/meta/fuzz-for.sh $(FUZZ_SECONDS) build/fuzzing)
libfuzzers: $(FUZZ_NAMES:%=$(BUILD)/fuzz_%)

## bench: figures against peers, one line each
bench: all $(BENCHES)
	@tests/bench/bench.sh $(BUILD)

## seeds: makes the built seeds of fixtures/corpus again
SEED_SOURCES := tests/fuzz/write_seeds.c $(addprefix tests/support/,r2r_sample.c r2r_builder.c pe_builder.c metadata_builder.c identity_samples.c go_table.c)
seeds: $(BUILD)/fuzz/write_seeds
	@mkdir -p $(addprefix fixtures/corpus/,pe metadata r2r method_name identity gopclntab)
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
	$(foreach file,$(MAN3),644:$(file):$(MANDIR)/man3/$(notdir $(file))) 644:symsrv/symsrv.8:$(MANDIR)/man8/symsrv.8 \
	$(foreach unit,service socket,644:symsrv/symsrv.$(unit):$(UNITDIR)/symsrv.$(unit))
LINKED = $(foreach name,libsym libsym-bcc,$(LIBDIR)/$(name).so.$(VERSION_MAJOR) $(LIBDIR)/$(name).so)
PKG_CONFIG := $(wildcard libsym/*.pc.in libsym/bcc/*.pc.in)

## install: library, header, pkg-config file, programs, manuals, completion (PREFIX=/usr/local DESTDIR=)
install: all
	@for row in $(INSTALLED); do file=$${row#*:}; install -D -m $${row%%:*} $${file%:*} $(DESTDIR)$${file#*:} || exit 1; done
	@for link in $(LINKED); do name=$${link##*/}; ln -sf $${name%%.*}.so.$(VERSION) $(DESTDIR)$$link; done
	@mkdir -p $(DESTDIR)$(LIBDIR)/pkgconfig
	@for file in $(PKG_CONFIG); do name=$${file##*/}; sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' $$file \
		> $(DESTDIR)$(LIBDIR)/pkgconfig/$${name%.in} || exit 1; done
## uninstall: removes what install put there
uninstall:
	rm -f $(addprefix $(DESTDIR),$(foreach row,$(INSTALLED),$(lastword $(subst :, ,$(row)))) $(LINKED) $(patsubst %.in,$(LIBDIR)/pkgconfig/%,$(notdir $(PKG_CONFIG))))
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

.PHONY: all profiler check list-checks check-build check-unit check-fuzz check-races check-native check-symsrv check-live check-matrix check-maps check-arm check-san check-tsan check-valgrind $(META_CHECKS) \
	fuzz libfuzzers seeds bench demo format install uninstall dist help clean
