/* SPDX-License-Identifier: MIT */
#include "tests/support/clr_image.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <string.h>

#include "libsym/clr/code_heap.h"
#include "tests/support/byte_writer.h"

static const char text[] =
	"{\"version\":0,\"baseline\":\"empty\",\"types\":{"
	"\"RangeSectionMap\":{\"TopLevelData\":16},"
	"\"RangeSectionFragment\":{\"Next\":24,\"RangeBegin\":0,\"RangeEndOpen\":8,"
	"\"RangeSection\":16},"
	"\"RangeSection\":{\"RangeBegin\":8,\"RangeEndOpen\":16,\"Flags\":0,\"HeapList\":24,"
	"\"R2RModule\":32},"
	"\"CodeHeapListNode\":{\"StartAddress\":0,\"EndAddress\":8,\"MapBase\":16,"
	"\"HeaderMap\":24},"
	"\"RealCodeHeader\":{\"MethodDesc\":8,\"NumUnwindInfos\":0,\"UnwindInfos\":16},"
	"\"RuntimeFunction\":{\"!\":12,\"BeginAddress\":0,\"EndAddress\":4},"
	"\"MethodDesc\":{\"!\":24,\"Flags3AndTokenRemainder\":2,\"ChunkIndex\":5,\"Slot\":6,"
	"\"Flags\":0,\"CodeData\":8},"
	"\"MethodDescChunk\":{\"!\":32,\"MethodTable\":8,\"FlagsAndTokenRange\":20},"
	"\"DynamicMethodDesc\":{\"MethodName\":40},"
	"\"StoredSigMethodDesc\":{\"Sig\":24,\"cSig\":32},"
	"\"MethodTable\":{\"MTFlags\":4,\"MTFlags2\":8,\"Module\":16,\"EEClassOrCanonMT\":24,"
	"\"PerInstInfo\":32,\"NumVirtuals\":0},"
	"\"EEClass\":{\"MethodTable\":8,\"InternalCorElementType\":0},"
	"\"ArrayClass\":{\"Rank\":16},"
	"\"GenericsDictInfo\":{\"NumDicts\":2,\"NumTypeArgs\":0},"
	"\"TypeDesc\":{\"TypeAndFlags\":4},\"ParamTypeDesc\":{\"TypeArg\":8},"
	"\"TypeVarTypeDesc\":{\"Module\":8,\"Token\":16},"
	"\"FnPtrTypeDesc\":{\"NumArgs\":8,\"CallConv\":12,\"RetAndArgTypes\":16},"
	"\"Module\":{\"Assembly\":8,\"Flags\":4,\"PEAssembly\":16,\"DynamicMetadata\":24,"
	"\"ReadyToRunInfo\":32},"
	"\"Assembly\":{\"IsCollectible\":3},\"PEAssembly\":{\"PEImage\":8},"
	"\"PEImage\":{\"LoadedImageLayout\":16},"
	"\"PEImageLayout\":{\"Base\":8,\"Size\":16,\"Flags\":20},"
	"\"DynamicMetadata\":{\"Size\":4,\"Data\":8},"
	"\"MethodDescCodeData\":{\"VersioningState\":8},"
	"\"MethodDescVersioningState\":{\"NativeCodeVersionNode\":16},"
	"\"NativeCodeVersionNode\":{\"NativeCode\":8,\"MethodDesc\":16,\"Next\":24,"
	"\"OptimizationTier\":32,\"Flags\":40,\"ILVersionId\":0},"
	"\"PlatformMetadata\":{\"PrecodeMachineDescriptor\":16},"
	"\"PrecodeMachineDescriptor\":{\"StubCodePageSize\":0,\"FixupStubPrecodeSize\":4,"
	"\"FixupBytes\":8,\"FixupIgnoredBytes\":32,\"StubPrecodeSize\":5,\"StubBytes\":56,"
	"\"StubIgnoredBytes\":80,\"StubPrecodeType\":104,\"PInvokeImportPrecodeType\":105,"
	"\"ThisPointerRetBufPrecodeType\":106},"
	"\"FixupPrecodeData\":{\"MethodDesc\":8},"
	"\"StubPrecodeData\":{\"SecretParam\":0,\"Type\":8},"
	"\"ThisPtrRetBufPrecodeData\":{\"MethodDesc\":0},"
	"\"ReadyToRunInfo\":{\"CompositeInfo\":8,\"EntryPointToMethodDescMap\":16},"
	"\"HashMap\":{\"Buckets\":8},\"Bucket\":{\"!\":64,\"Keys\":0,\"Values\":32}},"
	"\"globals\":{\"Architecture\":[\"x64\",\"string\"],"
	"\"ExecutionManagerCodeRangeMapAddress\":[[0],\"pointer\"],"
	"\"PlatformMetadata\":[[1],\"pointer\"],"
	"\"MethodDescTokenRemainderBitCount\":[\"0xa\",\"uint8\"],"
	"\"MethodDescAlignment\":[\"0x8\",\"uint64\"],\"StubCodeBlockLast\":[\"0xf\",\"uint8\"],"
	"\"HashMapSlotsPerBucket\":[\"0x4\",\"uint32\"],"
	"\"HashMapValueMask\":[\"0x7fffffffffffffff\",\"uint64\"]},"
	"\"contracts\":{\"ExecutionManager\":2,\"RuntimeTypeSystem\":1,\"Loader\":1,"
	"\"EcmaMetadata\":1,\"CodeVersions\":1,\"PrecodeStubs\":3,\"PlatformMetadata\":1}}";

const char *clr_image_contract(void)
{
	return text;
}

static const uint64_t elf_address = 0x7f0000000000;
static const uint64_t room_address = 0x10000000, room_bytes = 0x100000;
static const uint64_t code_address = 0x20000000, heap_bytes = 0x10000;

enum {
	LEVELS = 4
}; /* of nodes after the first */

/* ---- the ELF file ------------------------------------------------------------- */

static void put_segment(struct clr_image *image, unsigned int index, uint32_t type, uint64_t at,
			uint64_t size_bytes)
{
	Elf64_Phdr segment = { .p_type = type, .p_vaddr = at, .p_memsz = size_bytes };

	fake_memory_put(&image->fake, image->base + 64 + index * sizeof(segment), &segment,
			sizeof(segment));
}

static void put_dynamic(struct clr_image *image, unsigned int index, int64_t tag, uint64_t value)
{
	fake_memory_put_u64(&image->fake, image->base + CLR_ELF_DYNAMIC + 16 * index,
			    (uint64_t)tag);
	fake_memory_put_u64(&image->fake, image->base + CLR_ELF_DYNAMIC + 16 * index + 8, value);
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash;
}

/* One bucket, one bloom word; symbol 1 is the first and last one. */
static void put_symbol(struct clr_image *image)
{
	static const char name[] = "DotNetRuntimeContractDescriptor";
	uint64_t hash = image->base + CLR_ELF_HASH;
	Elf64_Sym symbol = { .st_name = 1, .st_shndx = 1, .st_value = CLR_ELF_DESCRIPTOR };

	fake_memory_put_u32(&image->fake, hash, 1);
	fake_memory_put_u32(&image->fake, hash + 4, 1);
	fake_memory_put_u32(&image->fake, hash + 8, 1);
	fake_memory_put_u32(&image->fake, hash + 24, 1);
	fake_memory_put_u32(&image->fake, hash + 28, hash_of(name) | 1);
	fake_memory_put(&image->fake, image->base + CLR_ELF_SYMBOLS + sizeof(symbol), &symbol,
			sizeof(symbol));
	fake_memory_put(&image->fake, image->base + CLR_ELF_STRINGS + 1, name, sizeof(name));
}

static void put_descriptor(struct clr_image *image, const uint64_t *pointers, uint32_t count)
{
	uint64_t at = image->base + CLR_ELF_DESCRIPTOR;

	_Static_assert(sizeof(text) <= CLR_ELF_BYTES - CLR_ELF_TEXT, "fits");
	fake_memory_put_u64(&image->fake, at, 0x0043414443434E44);
	fake_memory_put_u32(&image->fake, at + 8, 1);
	fake_memory_put_u32(&image->fake, at + 12, sizeof(text));
	fake_memory_put_u64(&image->fake, at + 16, image->base + CLR_ELF_TEXT);
	fake_memory_put_u32(&image->fake, at + 24, count);
	fake_memory_put_u64(&image->fake, at + 32, image->base + CLR_ELF_POINTERS);
	fake_memory_put(&image->fake, image->base + CLR_ELF_TEXT, text, sizeof(text));
	fake_memory_put(&image->fake, image->base + CLR_ELF_POINTERS, pointers,
			count * sizeof(*pointers));
}

static void put_elf(struct clr_image *image, const uint64_t *pointers, uint32_t count)
{
	Elf64_Ehdr header = { .e_phoff = 64, .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2 };

	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	fake_memory_add(&image->fake, image->base, CLR_ELF_BYTES);
	fake_memory_put(&image->fake, image->base, &header, sizeof(header));
	put_segment(image, 0, PT_LOAD, 0, CLR_ELF_BYTES);
	put_segment(image, 1, PT_DYNAMIC, CLR_ELF_DYNAMIC, 4 * sizeof(Elf64_Dyn));
	put_dynamic(image, 0, DT_SYMTAB, image->base + CLR_ELF_SYMBOLS);
	put_dynamic(image, 1, DT_STRTAB, image->base + CLR_ELF_STRINGS);
	put_dynamic(image, 2, DT_GNU_HASH, image->base + CLR_ELF_HASH);
	put_symbol(image);
	put_descriptor(image, pointers, count);
}

/* ---- code heaps ----------------------------------------------------------------- */

uint64_t clr_image_room(struct clr_image *image, size_t size_bytes)
{
	uint64_t room = image->next;

	image->next += (size_bytes + 15) & ~(uint64_t)15;
	cr_assert_leq(image->next, room_address + room_bytes);
	return room;
}

/* Sections form one list below one leaf; the reader visits all of them. */
uint64_t clr_image_add_section(struct clr_image *image, uint64_t begin, uint64_t end,
			       uint32_t flags, uint64_t heap_node, uint64_t r2r_module)
{
	uint64_t section = clr_image_room(image, 40), fragment = clr_image_room(image, 32);

	fake_memory_put_u32(&image->fake, section, flags);
	fake_memory_put_u64(&image->fake, section + 8, begin);
	fake_memory_put_u64(&image->fake, section + 16, end);
	fake_memory_put_u64(&image->fake, section + 24, heap_node);
	fake_memory_put_u64(&image->fake, section + 32, r2r_module);
	fake_memory_put_u64(&image->fake, fragment, begin);
	fake_memory_put_u64(&image->fake, fragment + 8, end);
	fake_memory_put_u64(&image->fake, fragment + 16, section);
	fake_memory_put_u64(&image->fake, fragment + 24,
			    image->fragments ? image->fragments | 1 : 0);
	image->fragments = fragment;
	fake_memory_put_u64(&image->fake, image->layout.range_map_address + 16 + 2048 * LEVELS + 8,
			    fragment);
	return section;
}

static void add_heap(struct clr_image *image, unsigned int index, uint32_t flags)
{
	struct clr_heap *heap = &image->heaps[index];

	heap->begin = code_address + index * heap_bytes;
	heap->used_bytes = 32;
	heap->node = clr_image_room(image, 32);
	heap->nibbles = clr_image_room(image, heap_bytes / 64);
	fake_memory_add(&image->fake, heap->begin, heap_bytes);
	fake_memory_put_u64(&image->fake, heap->node, heap->begin);
	fake_memory_put_u64(&image->fake, heap->node + 8, heap->begin + heap_bytes / 2);
	fake_memory_put_u64(&image->fake, heap->node + 16, heap->begin);
	fake_memory_put_u64(&image->fake, heap->node + 24, heap->nibbles);
	clr_image_add_section(image, heap->begin, heap->begin + heap_bytes, flags, heap->node, 0);
}

void clr_image_init(struct clr_image *image)
{
	uint64_t pointers[2];
	struct contract *contract = NULL;

	*image = (struct clr_image){ .base = elf_address, .next = room_address };
	fake_memory_add(&image->fake, room_address, room_bytes);
	pointers[0] = clr_image_room(image, 16 + 2048 * (LEVELS + 1));
	pointers[1] = clr_image_room(image, 128);
	put_elf(image, pointers, 2);
	cr_assert_null(contract_parse(text, sizeof(text), pointers, 2, &contract));
	cr_assert_null(layout_load(contract, &image->layout));
	cr_assert_null(layout_load_tiers(contract, &image->tiers));
	cr_assert_null(layout_load_precodes(contract, &image->precodes));
	contract_close(contract);
	/* Each node's second entry leads to the next; those of the last node are lists. */
	for (uint64_t i = 0; i < LEVELS; i++)
		fake_memory_put_u64(&image->fake, pointers[0] + 16 + 2048 * i + 8,
				    pointers[0] + 16 + 2048 * (i + 1));
	add_heap(image, CLR_HEAP_ORDINARY, CODE_SECTION_HEAP);
	add_heap(image, CLR_HEAP_COLLECTIBLE, CODE_SECTION_HEAP | CODE_SECTION_COLLECTIBLE);
}

void clr_image_deinit(struct clr_image *image)
{
	fake_memory_deinit(&image->fake);
}

static void mark(struct clr_image *image, const struct clr_heap *heap, uint64_t start, bool is_used)
{
	uint64_t at = start - heap->begin, unit = heap->nibbles + at / 256 * 4;
	unsigned int shift = 28 - 4 * (unsigned int)(at % 256 / 32);
	uint32_t value, nibble = (uint32_t)(at % 32 / 4) + 1;

	memcpy(&value, fake_memory_at(&image->fake, unit, 4), 4);
	value &= ~((uint32_t)15 << shift);
	fake_memory_put_u32(&image->fake, unit, is_used ? value | nibble << shift : value);
}

uint64_t clr_image_add_code(struct clr_image *image, unsigned int index, uint64_t method,
			    uint32_t piece_count)
{
	struct clr_heap *heap = &image->heaps[index];
	uint64_t start = heap->begin + heap->used_bytes + 12;
	uint64_t header = clr_image_room(image, 16 + 12 * (size_t)piece_count);

	heap->used_bytes += 32 * ((uint64_t)piece_count + 1);
	cr_assert_lt(heap->used_bytes, heap_bytes / 2);
	fake_memory_put_u64(&image->fake, start - 8, header);
	fake_memory_put_u32(&image->fake, header, piece_count);
	fake_memory_put_u64(&image->fake, header + 8, method);
	for (uint32_t i = 0; i < piece_count; i++) {
		uint32_t begin = (uint32_t)(start - heap->begin) + 32 * i;

		fake_memory_put_u32(&image->fake, header + 16 + 12 * i, begin);
		fake_memory_put_u32(&image->fake, header + 20 + 12 * i, begin + 32);
	}
	mark(image, heap, start, true);
	return start;
}

uint64_t clr_image_add_stub(struct clr_image *image, unsigned int index, uint32_t kind)
{
	struct clr_heap *heap = &image->heaps[index];
	uint64_t start = heap->begin + heap->used_bytes + 12;

	heap->used_bytes += 64;
	fake_memory_put_u64(&image->fake, start - 8, kind);
	mark(image, heap, start, true);
	return start;
}

void clr_image_free_code(struct clr_image *image, unsigned int index, uint64_t start)
{
	mark(image, &image->heaps[index], start, false);
}

/* ---- modules, types, methods ------------------------------------------------------ */

/* A mapped image: headers first, then CLI header, metadata at the end. */
static uint64_t put_pe(struct clr_image *image, const struct buf *metadata)
{
	uint64_t base = clr_image_room(image, CLR_PE_METADATA + metadata->size_bytes);
	uint64_t directories = base + 0x80 + 24 + 112;

	fake_memory_put_u16(&image->fake, base, 0x5a4d);
	fake_memory_put_u32(&image->fake, base + 0x3c, 0x80);
	fake_memory_put_u32(&image->fake, base + 0x80, 0x4550);
	fake_memory_put_u16(&image->fake, base + 0x80 + 20, 240);
	fake_memory_put_u16(&image->fake, base + 0x80 + 24, 0x20b);
	fake_memory_put_u32(&image->fake, directories + 14 * 8, CLR_PE_CLI);
	fake_memory_put_u32(&image->fake, base + CLR_PE_CLI + 8, CLR_PE_METADATA);
	fake_memory_put_u32(&image->fake, base + CLR_PE_CLI + 12, (uint32_t)metadata->size_bytes);
	fake_memory_put(&image->fake, base + CLR_PE_METADATA, metadata->data, metadata->size_bytes);
	return base;
}

static void set_layout(struct clr_image *image, uint64_t module, const struct buf *metadata)
{
	uint64_t assembly = clr_image_room(image, 16), pe_image = clr_image_room(image, 24);
	uint64_t layout = clr_image_room(image, 24);

	fake_memory_put_u64(&image->fake, module + 16, assembly);
	fake_memory_put_u64(&image->fake, assembly + 8, pe_image);
	fake_memory_put_u64(&image->fake, pe_image + 16, layout);
	fake_memory_put_u64(&image->fake, layout + 8, put_pe(image, metadata));
	fake_memory_put_u32(&image->fake, layout + 16,
			    CLR_PE_METADATA + (uint32_t)metadata->size_bytes);
	fake_memory_put_u32(&image->fake, layout + 20, 1);
}

void clr_image_put_at_rva(struct clr_image *image, uint64_t module, uint32_t rva, const void *bytes,
			  size_t size_bytes)
{
	static const uint64_t way[] = { 16, 8, 16, 8 }; /* the order of set_layout() */
	uint64_t at = module;

	for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++)
		memcpy(&at, fake_memory_at(&image->fake, at + way[i], 8), 8);
	fake_memory_put(&image->fake, at + rva, bytes, size_bytes);
}

uint64_t clr_image_add_module(struct clr_image *image, const struct metadata_builder *builder,
			      enum clr_module_kind kind)
{
	uint64_t module = clr_image_room(image, 40), assembly = clr_image_room(image, 8), dynamic;
	struct buf metadata;

	buf_init(&metadata, 1 << 20);
	build_metadata(builder, &metadata);
	fake_memory_put_u64(&image->fake, module + 8, assembly);
	fake_memory_put_u32(&image->fake, module + CLR_MODULE_FLAGS, CLR_MODULE_OPTIMIZED);
	if (kind == CLR_MODULE_COLLECTIBLE)
		fake_memory_put_u32(&image->fake, assembly, 0x01000000);
	if (kind == CLR_MODULE_EMITTED) {
		dynamic = clr_image_room(image, 8 + metadata.size_bytes);
		fake_memory_put_u64(&image->fake, module + 24, dynamic);
		fake_memory_put_u32(&image->fake, dynamic + 4, (uint32_t)metadata.size_bytes);
		fake_memory_put(&image->fake, dynamic + 8, metadata.data, metadata.size_bytes);
	} else {
		set_layout(image, module, &metadata);
	}
	buf_deinit(&metadata);
	return module;
}

static uint64_t add_table(struct clr_image *image, uint64_t module, size_t class_bytes,
			  uint64_t *class_ret)
{
	uint64_t type = clr_image_room(image, 40);

	*class_ret = clr_image_room(image, class_bytes);
	fake_memory_put_u64(&image->fake, type + 16, module);
	fake_memory_put_u64(&image->fake, type + 24, *class_ret);
	fake_memory_put_u64(&image->fake, *class_ret + 8, type);
	return type;
}

uint64_t clr_image_add_type(struct clr_image *image, uint64_t module, uint32_t rid)
{
	uint64_t ee_class, type = add_table(image, module, 24, &ee_class);

	fake_memory_put_u32(&image->fake, type + 8, rid << 8);
	return type;
}

void clr_image_set_arguments(struct clr_image *image, uint64_t type, const uint64_t *arguments,
			     uint16_t count)
{
	uint64_t info = clr_image_room(image, 24), dictionary = clr_image_room(image, 8 * count);

	fake_memory_put_u16(&image->fake, info, count);
	fake_memory_put_u16(&image->fake, info + 2, 2); /* the first belongs to a base class */
	fake_memory_put_u64(&image->fake, info + 16, dictionary);
	fake_memory_put(&image->fake, dictionary, arguments, 8 * (size_t)count);
	fake_memory_put_u64(&image->fake, type + 32, info + 8);
	fake_memory_put_u32(&image->fake, type + 4, 0x10);
}

uint64_t clr_image_add_array(struct clr_image *image, uint64_t module, uint64_t element,
			     uint8_t rank)
{
	uint64_t ee_class, type = add_table(image, module, 24, &ee_class);

	fake_memory_put_u32(&image->fake, type + 4, rank ? 0x80080000 : 0x800a0000);
	fake_memory_put_u16(&image->fake, type, 4); /* virtual methods */
	fake_memory_put_u64(&image->fake, type + 32, element);
	fake_memory_put(&image->fake, ee_class + 16, &rank, 1);
	return type;
}

uint64_t clr_image_add_method(struct clr_image *image, uint64_t type, uint32_t rid,
			      unsigned int classification, uint8_t index)
{
	uint64_t chunk = clr_image_room(image, 32 + 8 * (size_t)index + 48);
	uint64_t method = chunk + 32 + 8 * (uint64_t)index;

	fake_memory_put_u64(&image->fake, chunk + 8, type);
	fake_memory_put_u16(&image->fake, chunk + 20, (uint16_t)(rid >> 10 | 0x8000));
	fake_memory_put_u16(&image->fake, method, (uint16_t)(classification | 0x100));
	fake_memory_put_u16(&image->fake, method + 2, (uint16_t)((rid & 0x3ff) | 0x4000));
	fake_memory_put(&image->fake, method + 5, &index, 1);
	return method;
}

void clr_image_set_stored(struct clr_image *image, uint64_t method, const char *name,
			  const void *signature, uint32_t signature_bytes)
{
	uint64_t copy = clr_image_room(image, signature_bytes), string;

	fake_memory_put(&image->fake, copy, signature, signature_bytes);
	fake_memory_put_u64(&image->fake, method + 24, copy);
	fake_memory_put_u32(&image->fake, method + 32, signature_bytes);
	if (!name)
		return;
	string = clr_image_room(image, strlen(name) + 1);
	fake_memory_put(&image->fake, string, name, strlen(name) + 1);
	fake_memory_put_u64(&image->fake, method + 40, string);
}
