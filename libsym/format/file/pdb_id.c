/* SPDX-License-Identifier: MIT */
/*
 * Finds identity and length of a PDB in its three containers (pdb_id.h). open_msf() and open_msfz()
 * check the container's header; read_msf_stream() and read_msfz_stream() read the first bytes of
 * one stream. Both kinds have the GUID in stream 1 and the age in stream 3. A portable PDB has no
 * such streams: its identity is at the start of "#Pdb".
 */
#include "libsym/format/file/pdb_id.h"

static const char msf_magic[32] = "Microsoft C/C++ MSF 7.00\r\n\x1a"
				  "DS\0\0\0";
static const char msfz_magic[32] = "Microsoft MSFZ Container\r\n\x1a"
				   "ALD\0\0";

static const uint32_t most_streams = 1 << 20;

static uint32_t load32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static uint64_t load64(const uint8_t *bytes)
{
	return load32(bytes) | (uint64_t)load32(bytes + 4) << 32;
}

static bool read32(const struct byte_source *source, uint64_t offset, uint32_t *ret)
{
	uint8_t bytes[4];

	if (!byte_source_read(source, bytes, sizeof(bytes), offset))
		return false;
	*ret = load32(bytes);
	return true;
}

void pdb_id_order_guid(uint8_t guid[16], const uint8_t *bytes)
{
	static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	unsigned int i;

	for (i = 0; i < 16; i++)
		guid[i] = bytes[order[i]];
}

/* ---- MSF ---- */

struct msf {
	const struct byte_source *source;
	uint32_t page_bytes;
	uint32_t page_count;
	uint32_t directory_bytes;
	uint32_t page_list_page; /* page with the numbers of the directory's pages */
};

/* Reads a 32-bit word of the directory. Returns false if it lies outside. */
static bool directory_word(const struct msf *msf, uint64_t word, uint32_t *ret)
{
	uint64_t position = word * 4;
	uint64_t list = (uint64_t)msf->page_list_page * msf->page_bytes;
	uint32_t page;

	if (position + 4 > msf->directory_bytes ||
	    position / msf->page_bytes >= msf->page_bytes / 4 ||
	    !read32(msf->source, list + position / msf->page_bytes * 4, &page) ||
	    page >= msf->page_count)
		return false;
	return read32(msf->source, (uint64_t)page * msf->page_bytes + position % msf->page_bytes,
		      ret);
}

/* Reads the first bytes of a stream, which lie in its first page. */
static bool read_msf_stream(const struct msf *msf, uint32_t stream, void *room, size_t count)
{
	uint32_t streams, size_bytes, page, i;
	uint64_t word;

	if (!directory_word(msf, 0, &streams) || stream >= streams || streams > most_streams)
		return false;
	word = 1 + (uint64_t)streams;
	for (i = 0; i < stream; i++) {
		if (!directory_word(msf, 1 + (uint64_t)i, &size_bytes))
			return false;
		if (size_bytes != UINT32_MAX)
			word += ((uint64_t)size_bytes + msf->page_bytes - 1) / msf->page_bytes;
	}
	return directory_word(msf, 1 + (uint64_t)stream, &size_bytes) && size_bytes != UINT32_MAX &&
	       size_bytes >= count && count <= msf->page_bytes &&
	       directory_word(msf, word, &page) && page < msf->page_count &&
	       byte_source_read(msf->source, room, count, (uint64_t)page * msf->page_bytes);
}

static bool open_msf(struct msf *msf, const struct byte_source *source, struct pdb_id *id)
{
	uint8_t header[24];

	if (!byte_source_read(source, header, sizeof(header), sizeof(msf_magic)))
		return false;
	msf->source = source;
	msf->page_bytes = load32(header);
	msf->page_count = load32(header + 8);
	msf->directory_bytes = load32(header + 12);
	msf->page_list_page = load32(header + 20);
	if (msf->page_bytes < 512 || msf->page_bytes > 65536 ||
	    msf->page_bytes & (msf->page_bytes - 1) || msf->page_list_page >= msf->page_count)
		return false;
	id->needed_bytes = (uint64_t)msf->page_bytes * msf->page_count;
	return true;
}

/* ---- MSFZ ---- */

struct msfz {
	const struct byte_source *source;
	uint64_t directory_offset;
	uint32_t directory_bytes;
	uint32_t stream_count;
};

static bool read_msfz_stream(const struct msfz *msfz, uint32_t stream, void *room, size_t count)
{
	uint64_t position = msfz->directory_offset;
	uint64_t end = position + msfz->directory_bytes;
	uint8_t place[8];
	uint32_t size_bytes;
	uint32_t i = 0;

	if (stream >= msfz->stream_count)
		return false;
	while (position < end && i <= stream) {
		if (!read32(msfz->source, position, &size_bytes))
			return false;
		position += 4;
		if (size_bytes == UINT32_MAX || !size_bytes) {
			i++;
			continue;
		}
		if (i == stream) {
			/* The top bit means "inside a compressed chunk". */
			return size_bytes >= count &&
			       byte_source_read(msfz->source, place, 8, position) &&
			       !(place[7] & 0x80) &&
			       byte_source_read(msfz->source, room, count, load64(place));
		}
		position += 8;
	}
	return false;
}

static bool open_msfz(struct msfz *msfz, const struct byte_source *source, struct pdb_id *id)
{
	uint8_t header[48];
	uint64_t chunk_table_offset, end;

	if (!byte_source_read(source, header, sizeof(header), sizeof(msfz_magic)) ||
	    load64(header) != 0 || load32(header + 28) != 0 /* compressed directory */)
		return false;
	msfz->source = source;
	msfz->directory_offset = load64(header + 8);
	chunk_table_offset = load64(header + 16);
	msfz->stream_count = load32(header + 24);
	msfz->directory_bytes = load32(header + 36);
	if (!byte_source_covers(source, msfz->directory_offset, msfz->directory_bytes) ||
	    chunk_table_offset > source->size_bytes || msfz->stream_count > most_streams)
		return false;
	end = chunk_table_offset + load32(header + 44);
	id->needed_bytes = msfz->directory_offset + msfz->directory_bytes;
	if (end > id->needed_bytes)
		id->needed_bytes = end;
	return true;
}

/* ---- portable ---- */

static bool read_portable(const struct byte_source *source, struct pdb_id *id)
{
	uint8_t root[16], header[8], name[32], pdb[20];
	uint64_t position;
	uint16_t count, i;
	bool found = false;

	if (!byte_source_read(source, root, sizeof(root), 0) || load32(root + 12) > 256)
		return false;
	position = 16 + (uint64_t)load32(root + 12);
	if (!byte_source_read(source, header, 4, position))
		return false;
	count = (uint16_t)(header[2] | header[3] << 8);
	position += 4;
	for (i = 0; i < count && i < 64; i++) {
		size_t length = 0;

		if (!byte_source_read(source, header, 8, position))
			return false;
		for (position += 8; length < sizeof(name); length++)
			if (!byte_source_read(source, name + length, 1, position + length) ||
			    !name[length])
				break;
		if (length == sizeof(name) || !byte_source_covers(source, position, length + 1))
			return false;
		position += (length + 4) & ~(size_t)3;
		if ((uint64_t)load32(header) + load32(header + 4) > id->needed_bytes)
			id->needed_bytes = (uint64_t)load32(header) + load32(header + 4);
		if (!found && !memcmp(name, "#Pdb", 5))
			found = load32(header + 4) >= sizeof(pdb) &&
				byte_source_read(source, pdb, sizeof(pdb), load32(header));
	}
	if (!found)
		return false;
	pdb_id_order_guid(id->guid, pdb);
	id->stamp = load32(pdb + 16);
	id->age = UINT32_MAX;
	return true;
}

/* ---- all three ---- */

static bool begins_with(const struct byte_source *source, const char *magic, size_t count)
{
	char bytes[32];

	return byte_source_read(source, bytes, count, 0) && !memcmp(bytes, magic, count);
}

static enum pdb_container container_of(const struct byte_source *source)
{
	if (begins_with(source, msf_magic, sizeof(msf_magic)))
		return PDB_MSF;
	if (begins_with(source, msfz_magic, sizeof(msfz_magic)))
		return PDB_MSFZ;
	return begins_with(source, "BSJB", 4) ? PDB_PORTABLE : 0;
}

bool pdb_id_recognise(const struct byte_source *source)
{
	return container_of(source) != 0;
}

static void parse_streams(struct pdb_id *id, const uint8_t *info, const uint8_t *dbi)
{
	id->age = load32(info + 8);
	pdb_id_order_guid(id->guid, info + 12);
	if (dbi && load32(dbi) == UINT32_MAX)
		id->age = load32(dbi + 8);
}

bool pdb_id_read(const struct byte_source *source, struct pdb_id *ret, const char **failure_ret)
{
	struct pdb_id id = { .container = container_of(source) };
	uint8_t info[28], dbi[12];
	struct msfz msfz;
	struct msf msf;
	bool ok = false;

	if (id.container == PDB_PORTABLE) {
		ok = read_portable(source, &id);
	} else if (id.container == PDB_MSF) {
		ok = open_msf(&msf, source, &id) && read_msf_stream(&msf, 1, info, sizeof(info));
		if (ok)
			parse_streams(&id, info,
				      read_msf_stream(&msf, 3, dbi, sizeof(dbi)) ? dbi : NULL);
	} else if (id.container == PDB_MSFZ) {
		ok = open_msfz(&msfz, source, &id) &&
		     read_msfz_stream(&msfz, 1, info, sizeof(info));
		if (ok)
			parse_streams(&id, info,
				      read_msfz_stream(&msfz, 3, dbi, sizeof(dbi)) ? dbi : NULL);
	}
	*failure_ret = ok ? NULL : "no readable PDB identity";
	if (ok)
		*ret = id;
	return ok;
}
