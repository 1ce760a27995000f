/* SPDX-License-Identifier: MIT */
/*
 * ELF as the dynamic linker sees it: program headers, PT_DYNAMIC, the hash table, one symbol.
 * glibc relocates the pointers of the dynamic section to addresses; musl leaves them as vaddrs.
 * A value below the base is taken as a vaddr.
 */
#include "libsym/process/remote_symbol.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

struct dynamic {
	uint64_t bias; /* address of vaddr 0 */
	uint64_t symbols, strings, gnu_hash, hash;
	const char *wanted;  /* the symbol's name */
	size_t wanted_bytes; /* with its NUL */
};

/* `ret` receives the needed entries only. */
static struct sym_error *read_dynamic(struct remote_memory *memory, uint64_t base,
				      struct dynamic *ret)
{
	Elf64_Ehdr header;
	Elf64_Phdr segments[64];
	uint64_t dynamic_address = 0, dynamic_bytes = 0;
	bool has_load = false;
	struct sym_error *error =
		remote_read_now(memory, base, &header, sizeof(header), "the ELF header");

	if (error)
		return error;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phentsize != sizeof(segments[0]) ||
	    !header.e_phnum || header.e_phnum > 64)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"the module at 0x%" PRIx64 " is not a 64-bit ELF file",
					base);
	error = remote_read_now(memory, base + header.e_phoff, segments,
				header.e_phnum * sizeof(segments[0]), "the program headers");
	if (error)
		return error;
	for (size_t i = 0; i < header.e_phnum; i++) {
		if (segments[i].p_type == PT_LOAD && !has_load) {
			ret->bias =
				base - (segments[i].p_vaddr & ~(uint64_t)(REMOTE_PAGE_BYTES - 1));
			has_load = true;
		}
		if (segments[i].p_type == PT_DYNAMIC) {
			dynamic_address = segments[i].p_vaddr;
			dynamic_bytes = segments[i].p_memsz;
		}
	}
	if (!has_load || !dynamic_bytes)
		return sym_error_create(SYM_ERROR_NOT_FOUND,
					"the module at 0x%" PRIx64 " has no dynamic section", base);
	for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic_bytes && at < 4096;
	     at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn entry;
		uint64_t value;

		error = remote_read_now(memory, ret->bias + dynamic_address + at, &entry,
					sizeof(entry), "the dynamic section");
		if (error)
			return error;
		value = entry.d_un.d_ptr < base ? entry.d_un.d_ptr + ret->bias : entry.d_un.d_ptr;
		if (entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_SYMTAB)
			ret->symbols = value;
		else if (entry.d_tag == DT_STRTAB)
			ret->strings = value;
		else if (entry.d_tag == DT_GNU_HASH)
			ret->gnu_hash = value;
		else if (entry.d_tag == DT_HASH)
			ret->hash = value;
	}
	return NULL;
}

/* Checks whether symbol `index` has the wanted name. *address_ret stays 0 if not. */
static struct sym_error *check_symbol(struct remote_memory *memory, const struct dynamic *dynamic,
				      uint32_t index, uint64_t *address_ret)
{
	Elf64_Sym symbol;
	char name[REMOTE_SYMBOL_BYTES];
	struct sym_error *error = remote_read_now(memory, dynamic->symbols + index * sizeof(symbol),
						  &symbol, sizeof(symbol), "the symbol table");

	if (error || symbol.st_shndx == SHN_UNDEF || !symbol.st_value)
		return error;
	error = remote_read_now(memory, dynamic->strings + symbol.st_name, name,
				dynamic->wanted_bytes, "the string table");
	if (!error && !memcmp(name, dynamic->wanted, dynamic->wanted_bytes))
		*address_ret = dynamic->bias + symbol.st_value;
	return error;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* Chains end with an odd value. The search in a corrupt table ends after 2^16 steps. */
static struct sym_error *find_by_gnu_hash(struct remote_memory *memory,
					  const struct dynamic *dynamic, uint64_t *address_ret)
{
	uint32_t header[4], index, value,
		hash = gnu_hash(dynamic->wanted); /* buckets, first symbol, bloom words, shift */
	uint64_t buckets, chains;
	struct sym_error *error = remote_read_now(memory, dynamic->gnu_hash, header, sizeof(header),
						  "the hash table");

	if (error || !header[0])
		return error;
	buckets = dynamic->gnu_hash + sizeof(header) + (uint64_t)header[2] * 8;
	chains = buckets + (uint64_t)header[0] * 4;
	error = remote_read_now(memory, buckets + (uint64_t)(hash % header[0]) * 4, &index, 4,
				"the hash table");
	if (error || index < header[1])
		return error;
	for (uint32_t steps = 0; steps < 65536; steps++, index++) {
		error = remote_read_now(memory, chains + (uint64_t)(index - header[1]) * 4, &value,
					4, "the hash table");
		if (!error && (value | 1) == (hash | 1))
			error = check_symbol(memory, dynamic, index, address_ret);
		if (error || *address_ret || (value & 1))
			return error;
	}
	return NULL;
}

static uint32_t sysv_hash(const char *name)
{
	uint32_t hash = 0;

	for (; *name; name++) {
		hash = (hash << 4) + (uint8_t)*name;
		hash ^= (hash >> 24) & 0xf0;
		hash &= 0x0fffffff;
	}
	return hash;
}

static struct sym_error *find_by_sysv_hash(struct remote_memory *memory,
					   const struct dynamic *dynamic, uint64_t *address_ret)
{
	uint32_t header[2], index; /* buckets, chains */
	struct sym_error *error =
		remote_read_now(memory, dynamic->hash, header, sizeof(header), "the hash table");

	if (error || !header[0])
		return error;
	error = remote_read_now(
		memory, dynamic->hash + 8 + (uint64_t)(sysv_hash(dynamic->wanted) % header[0]) * 4,
		&index, 4, "the hash table");
	for (uint32_t steps = 0; !error && index && index < header[1] && steps < 65536; steps++) {
		error = check_symbol(memory, dynamic, index, address_ret);
		if (error || *address_ret)
			break;
		error = remote_read_now(memory,
					dynamic->hash + 8 + ((uint64_t)header[0] + index) * 4,
					&index, 4, "the hash table");
	}
	return error;
}

struct sym_error *remote_symbol_find(struct remote_memory *memory, uint64_t base_address,
				     const char *name, uint64_t *address_ret)
{
	struct dynamic dynamic = { .wanted = name, .wanted_bytes = strlen(name) + 1 };
	struct sym_error *error;

	*address_ret = 0;
	if (dynamic.wanted_bytes > REMOTE_SYMBOL_BYTES)
		return sym_error_create(SYM_ERROR_ARGUMENT, "a name of more than %d bytes",
					REMOTE_SYMBOL_BYTES - 1);
	error = read_dynamic(memory, base_address, &dynamic);
	if (error)
		return error;
	if (dynamic.symbols && dynamic.strings && dynamic.gnu_hash)
		return find_by_gnu_hash(memory, &dynamic, address_ret);
	if (dynamic.symbols && dynamic.strings && dynamic.hash)
		return find_by_sysv_hash(memory, &dynamic, address_ret);
	return NULL;
}
