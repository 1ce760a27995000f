# SPDX-License-Identifier: MIT
# The whole build. `make help` lists the targets.
#
#   V=1          show the commands
#   DEVELOPER=1  warnings are errors, banned functions, fuzz targets are built by `all`
#   SAN=1        AddressSanitizer and UndefinedBehaviorSanitizer, objects in build/san
#   SAN=thread   ThreadSanitizer, objects in build/tsan
#   BUILD=DIR    objects and products go there

.SUFFIXES:
.SECONDARY:
.DELETE_ON_ERROR:
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

CC ?= gcc
CXX ?= g++
CLANG ?= clang
CLANG_FORMAT ?= clang-format
PKG_CONFIG ?= pkg-config
CFLAGS ?= -O2 -g
AR ?= ar

BUILD := build
WARNINGS := -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wwrite-strings -Wvla \
	-Wdeclaration-after-statement -Wshadow -Wundef -Wno-missing-field-initializers
DEFINES := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64
EXTRA_CFLAGS :=

ifdef DEVELOPER
WARNINGS += -Werror
EXTRA_CFLAGS += -include libsym/base/banned.h
endif
ifeq ($(SAN),fuzz)
BUILD := build/fuzzing
CC := $(CLANG)
EXTRA_CFLAGS += -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
EXTRA_LDFLAGS += -fsanitize=address,undefined
else ifeq ($(SAN),thread)
BUILD := build/tsan
EXTRA_CFLAGS += -fsanitize=thread -fno-omit-frame-pointer
EXTRA_LDFLAGS += -fsanitize=thread
else ifdef SAN
BUILD := build/san
EXTRA_CFLAGS += -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
EXTRA_LDFLAGS += -fsanitize=address,undefined
endif

ALL_CFLAGS = -std=gnu17 $(DEFINES) -I. $(WARNINGS) $(CFLAGS) -fPIC -fvisibility=hidden \
	-ffile-prefix-map=$(CURDIR)/= $(EXTRA_CFLAGS) -MMD -MP
ALL_LDFLAGS = $(LDFLAGS) $(EXTRA_LDFLAGS)

LIB_LIBS := -lelf -lxxhash -ljansson
CLI_LIBS := -ljansson -lxxhash
TEST_LIBS := -lcriterion
# tests/support/alloc_fail.c stands before these in the unit tests
WRAP_ALLOCATIONS := $(foreach name,malloc calloc realloc reallocarray aligned_alloc strdup strndup,-Wl,--wrap=$(name))

say = $(if $(filter 1,$(V)),,@printf '  %-8s%s\n' $(1) $(2);)

# ---- sources ------------------------------------------------------------------
LIB_SOURCES := $(sort $(wildcard libsym/*.c libsym/base/*.c libsym/format/*.c libsym/source/*.c libsym/clr/*.c))
CLI_SOURCES := $(sort $(wildcard mapgen/*.c mapgen/profile/*.c))
TEST_SOURCES := $(sort $(wildcard tests/libsym/*.c tests/libsym/*/*.c tests/mapgen/*.c tests/support/*.c))
FUZZ_SOURCES := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SUPPORT = $(BUILD)/tests/support/perfmap_check.o
BENCH_SOURCES := $(sort $(wildcard tests/bench/bench_*.c))
EXAMPLE_SOURCES := $(sort $(wildcard libsym/examples/*.c))

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
LIB_OBJECTS := $(call objects,$(LIB_SOURCES))
CLI_OBJECTS := $(call objects,$(CLI_SOURCES))
TEST_OBJECTS := $(call objects,$(TEST_SOURCES))

LIB_STATIC := $(BUILD)/libsym.a
LIB_SHARED := $(BUILD)/libsym.so.$(VERSION)
CLI := $(BUILD)/dotnet-mapgen
UNIT := $(BUILD)/tests/unit
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzz/replay_%,$(FUZZ_SOURCES))
BENCHES := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(BENCH_SOURCES))
EXAMPLES := $(patsubst libsym/examples/%.c,$(BUILD)/examples/%,$(EXAMPLE_SOURCES))

PROGRAMS := $(if $(CLI_SOURCES),$(CLI))
MAN1 := $(wildcard mapgen/*.1)
MAN3 := $(wildcard libsym/*.3)
COMPLETION := $(wildcard mapgen/*.bash)

## all: the library (static and shared) and the programs
all: $(LIB_STATIC) $(LIB_SHARED) $(PROGRAMS) $(EXAMPLES) $(if $(DEVELOPER),$(FUZZERS))

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(LIB_STATIC): $(LIB_OBJECTS)
	@rm -f $@
	$(call say,AR,$@)$(AR) rcsD $@ $^

$(LIB_SHARED): $(LIB_OBJECTS) libsym/libsym.map
	$(call say,LD,$@)$(CC) -shared -Wl,-soname,libsym.so.$(VERSION_MAJOR) \
		-Wl,--version-script=libsym/libsym.map -Wl,--no-undefined-version \
		$(ALL_LDFLAGS) -o $@ $(LIB_OBJECTS) $(LIB_LIBS)
	@ln -sf libsym.so.$(VERSION) $(BUILD)/libsym.so.$(VERSION_MAJOR)
	@ln -sf libsym.so.$(VERSION_MAJOR) $(BUILD)/libsym.so

substitute_pc = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
	-e 's|@VERSION@|$(VERSION)|' libsym/libsym.pc.in

$(CLI): $(CLI_OBJECTS) $(LIB_STATIC)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIB_LIBS) $(CLI_LIBS)

# Criterion's assertions declare variables in the middle of a block.
$(TEST_OBJECTS): WARNINGS += -Wno-declaration-after-statement

$(UNIT): $(TEST_OBJECTS) $(LIB_STATIC)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) $(WRAP_ALLOCATIONS) -o $@ $^ $(LIB_LIBS) $(CLI_LIBS) $(TEST_LIBS)

$(BUILD)/fuzz/replay_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/replay.o $(FUZZ_SUPPORT) $(LIB_STATIC)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIB_LIBS)

$(BUILD)/bench/%: $(BUILD)/tests/bench/%.o $(LIB_STATIC)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIB_LIBS) $(BENCH_LIBS_$*) -ldl

$(BUILD)/examples/%: $(BUILD)/libsym/examples/%.o $(LIB_STATIC)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIB_LIBS)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

# ---- tests --------------------------------------------------------------------
# Every check prints `ok NAME`, `FAILED NAME: why` or `skipped NAME: why`, a line each.
META_CHECKS := check-headers check-layers check-abi check-docs check-fixtures check-style check-install
CHECKS := check-build check-unit check-fuzz $(META_CHECKS) check-live

## check: every test: unit, fuzz replay, the tree itself, live .NET processes; ends with the counts
check:
	+@MAKE='$(MAKE)' tests/meta/all-checks.sh $(CHECKS)

list-checks:
	@echo $(CHECKS)

check-build: all
	@echo 'ok build'

## check-unit: unit tests (FILTER='suite/test' for some)
check-unit: $(UNIT) $(PROGRAMS)
	$(UNIT) $(if $(FILTER),--filter '$(FILTER)')

## check-fuzz: every fuzz target over its corpus in fixtures/corpus
check-fuzz: $(FUZZERS)
	@tests/meta/replay-corpus.sh $(FUZZERS)

## check-live: real .NET processes, perf, BCC (ONLY='name name' for some)
check-live: all
	@python3 tests/dotnet/live_tests.py --build $(BUILD) $(ONLY)

## check-headers: each header compiles alone; libsym.h as C11 and C++17, without padding
## check-layers: includes point to lower layers only
## check-abi: exported names of libsym.so = functions of libsym.h
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

## check-tsan: unit tests under ThreadSanitizer
check-tsan:
	@tests/meta/findings.sh thread-sanitizer build/tsan/log setarch -R $(MAKE) SAN=thread check-unit

## check-valgrind: unit tests under valgrind
check-valgrind: $(UNIT) $(PROGRAMS)
	@tests/meta/findings.sh valgrind build/valgrind valgrind -q --trace-children=yes --leak-check=full \
		--errors-for-leak-kinds=definite --show-leak-kinds=definite --log-file=build/valgrind/%p $(UNIT) --jobs 2

## fuzz: coverage-guided fuzzers in build/fuzzing (clang); FUZZ_SECONDS=60 also runs each
fuzz:
	@$(MAKE) SAN=fuzz libfuzzers
	@$(if $(FUZZ_SECONDS),tests/meta/fuzz-for.sh $(FUZZ_SECONDS) build/fuzzing)

libfuzzers: $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzz_%,$(FUZZ_SOURCES))

$(BUILD)/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(FUZZ_SUPPORT) $(LIB_STATIC)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIB_LIBS)

## bench: figures against peers, one line each
bench: all $(BENCHES)
	@tests/bench/bench.sh $(BUILD)

## seeds: makes the built seeds of fixtures/corpus again
SEED_SOURCES := tests/fuzz/write_seeds.c $(addprefix tests/support/,r2r_sample.c r2r_builder.c pe_builder.c metadata_builder.c)
seeds: $(BUILD)/fuzz/write_seeds
	@mkdir -p $(addprefix fixtures/corpus/,pe metadata r2r method_name)
	$(BUILD)/fuzz/write_seeds fixtures/corpus

$(BUILD)/fuzz/write_seeds: $(call objects,$(SEED_SOURCES)) $(LIB_STATIC)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIB_LIBS)

# ---- people ---------------------------------------------------------------------
## demo: names the frames of a live .NET process, before and after
demo: all
	@python3 tests/dotnet/demo.py --build $(BUILD)

## format: clang-format over the sources
format:
	$(CLANG_FORMAT) -i $(shell find libsym mapgen symsrv tests -name '*.[ch]' 2>/dev/null)

## install: library, header, pkg-config file, program, manual, completion (PREFIX=/usr/local DESTDIR=)
install: all
	install -d $(addprefix $(DESTDIR),$(LIBDIR)/pkgconfig $(INCLUDEDIR)/libsym $(BINDIR) $(MANDIR)/man1 $(MANDIR)/man3 $(BASHCOMPDIR))
	install -m 644 libsym/libsym.h $(DESTDIR)$(INCLUDEDIR)/libsym
	install -m 644 $(LIB_STATIC) $(DESTDIR)$(LIBDIR)
	install -m 755 $(LIB_SHARED) $(DESTDIR)$(LIBDIR)
	ln -sf libsym.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libsym.so.$(VERSION_MAJOR)
	ln -sf libsym.so.$(VERSION_MAJOR) $(DESTDIR)$(LIBDIR)/libsym.so
	$(call substitute_pc) > $(DESTDIR)$(LIBDIR)/pkgconfig/libsym.pc
	$(if $(PROGRAMS),install -m 755 $(PROGRAMS) $(DESTDIR)$(BINDIR))
	$(if $(MAN1),install -m 644 $(MAN1) $(DESTDIR)$(MANDIR)/man1)
	$(if $(MAN3),install -m 644 $(MAN3) $(DESTDIR)$(MANDIR)/man3)
	$(if $(COMPLETION),install -m 644 $(COMPLETION) $(DESTDIR)$(BASHCOMPDIR)/dotnet-mapgen)

## uninstall: removes what install put there
uninstall:
	rm -f $(addprefix $(DESTDIR),$(INCLUDEDIR)/libsym/libsym.h $(LIBDIR)/libsym.a $(LIBDIR)/libsym.so $(LIBDIR)/libsym.so.$(VERSION_MAJOR) \
		$(LIBDIR)/libsym.so.$(VERSION) $(LIBDIR)/pkgconfig/libsym.pc $(BINDIR)/dotnet-mapgen $(BASHCOMPDIR)/dotnet-mapgen \
		$(addprefix $(MANDIR)/man1/,$(notdir $(MAN1))) $(addprefix $(MANDIR)/man3/,$(notdir $(MAN3))))
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

.PHONY: all check list-checks check-build check-unit check-fuzz check-live check-san check-tsan check-valgrind $(META_CHECKS) \
	fuzz libfuzzers seeds bench demo format install uninstall dist help clean
