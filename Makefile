# SPDX-License-Identifier: MIT
# The whole build. `make help` lists the targets.
#
#   V=1          show the commands
#   DEVELOPER=1  warnings are errors, banned functions, fuzz targets are built by `all`
#   SAN=1        AddressSanitizer and UndefinedBehaviorSanitizer, objects in build/san
#   SAN=thread   ThreadSanitizer, objects in build/tsan

.SUFFIXES:
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
ifeq ($(SAN),thread)
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

LIB_LIBS := -lelf -lxxhash
CLI_LIBS := -ljansson -lxxhash
TEST_LIBS := -lcriterion

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s%s\n' $(1) $(2);
endif

# ---- sources ------------------------------------------------------------------
LIB_SOURCES := $(sort $(wildcard libsym/*.c libsym/base/*.c libsym/format/*.c libsym/source/*.c libsym/clr/*.c))
CLI_SOURCES := $(sort $(wildcard mapgen/*.c mapgen/profile/*.c))
TEST_SOURCES := $(sort $(wildcard tests/libsym/*.c tests/libsym/*/*.c tests/mapgen/*.c tests/support/*.c))
FUZZ_SOURCES := $(sort $(wildcard tests/fuzz/fuzz_*.c))
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

## all: the library (static and shared) and the programs
all: $(LIB_STATIC) $(LIB_SHARED) $(BUILD)/libsym.pc $(PROGRAMS) $(EXAMPLES) $(if $(DEVELOPER),$(FUZZERS))
.PHONY: all

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

$(BUILD)/libsym.pc: libsym/libsym.pc.in libsym/libsym.h
	@mkdir -p $(@D)
	$(call say,GEN,$@)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|' $< > $@

$(CLI): $(CLI_OBJECTS) $(LIB_STATIC)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIB_LIBS) $(CLI_LIBS)

$(UNIT): $(TEST_OBJECTS) $(LIB_STATIC)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIB_LIBS) $(CLI_LIBS) $(TEST_LIBS)

$(BUILD)/fuzz/replay_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/replay.o $(LIB_STATIC)
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
## check: every test, the live ones included, and the replay of the fuzz corpus
check: check-unit check-fuzz
.PHONY: check

## check-unit: unit tests (FILTER='suite/test' for some)
check-unit: $(UNIT) $(PROGRAMS)
	$(UNIT) $(if $(FILTER),--filter '$(FILTER)')
.PHONY: check-unit

## check-fuzz: every fuzz target over its corpus in fixtures/corpus
check-fuzz: $(FUZZERS)
	@for replay in $(FUZZERS); do name=$${replay##*replay_}; $$replay fixtures/corpus/$$name || exit 1; done
.PHONY: check-fuzz

## check-san: unit tests and fuzz replay under AddressSanitizer and UndefinedBehaviorSanitizer
check-san:
	@rm -rf build/san/log; mkdir -p build/san/log
	ASAN_OPTIONS=log_path=$(CURDIR)/build/san/log/asan UBSAN_OPTIONS=print_stacktrace=1:log_path=$(CURDIR)/build/san/log/ubsan \
		$(MAKE) SAN=1 check-unit check-fuzz
	@if [ -n "$$(ls build/san/log)" ]; then head -n 60 build/san/log/*; exit 1; fi
.PHONY: check-san

## help: this list
help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)
.PHONY: help

## clean: remove everything that was built
clean:
	rm -rf build
.PHONY: clean
