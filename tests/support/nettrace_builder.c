/* SPDX-License-Identifier: MIT */
#include "tests/support/nettrace_builder.h"

#include <string.h>

void put_u16(struct buf *buf, uint16_t value)
{
	buf_append(buf, &value, sizeof(value));
}

void put_u32(struct buf *buf, uint32_t value)
{
	buf_append(buf, &value, sizeof(value));
}

void put_u64(struct buf *buf, uint64_t value)
{
	buf_append(buf, &value, sizeof(value));
}

void put_utf16(struct buf *buf, const char *text)
{
	for (;; text++) {
		put_u16(buf, (uint8_t)*text);
		if (!*text)
			return;
	}
}

static void put_type(struct buf *buf, const char *name)
{
	buf_append(buf, "\5\5\1", 3);
	put_u32(buf, 2);
	put_u32(buf, 2);
	put_u32(buf, (uint32_t)strlen(name));
	buf_append_string(buf, name);
	buf_append_char(buf, 6);
}

void nettrace_builder_init(struct nettrace_builder *builder)
{
	buf_init(&builder->stream, 1 << 20);
	buf_init(&builder->block, 1 << 20);
	builder->thread = (uint64_t)1 << 63;
	builder->event_number = 0;
	builder->time = 0;
	buf_append_string(&builder->stream, "Nettrace");
	put_u32(&builder->stream, 20);
	buf_append_string(&builder->stream, "!FastSerialization.1");
	put_type(&builder->stream, "Trace");
	for (int i = 0; i < 48; i++)
		buf_append_char(&builder->stream, (char)i);
	buf_append_char(&builder->stream, 6);
}

void nettrace_builder_deinit(struct nettrace_builder *builder)
{
	buf_deinit(&builder->stream);
	buf_deinit(&builder->block);
}

void begin_block(struct nettrace_builder *builder, bool compressed)
{
	buf_clear(&builder->block);
	builder->compressed = compressed;
	builder->header_number = 0;
	put_u16(&builder->block, 20);
	put_u16(&builder->block, compressed);
	put_u64(&builder->block, 1); /* times */
	put_u64(&builder->block, 2);
	builder->header_time = 0;
}

void end_block(struct nettrace_builder *builder, const char *type)
{
	put_type(&builder->stream, type);
	put_u32(&builder->stream, (uint32_t)builder->block.size_bytes);
	while (builder->stream.size_bytes % 4)
		buf_append_char(&builder->stream, 0);
	buf_append(&builder->stream, builder->block.data, builder->block.size_bytes);
	buf_append_char(&builder->stream, 6);
}

void end_stream(struct nettrace_builder *builder)
{
	buf_append_char(&builder->stream, 1);
}

static void put_varint(struct buf *buf, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		buf_append_char(buf, (char)(0x80 | (value & 0x7f)));
	buf_append_char(buf, (char)value);
}

static void put_plain(struct nettrace_builder *builder, uint32_t number, const void *payload,
		      size_t size_bytes)
{
	struct buf *block = &builder->block;
	size_t start = block->size_bytes;

	put_u32(block, (uint32_t)(76 + size_bytes));
	put_u32(block, number | 0x80000000u); /* sorted */
	put_u32(block, builder->event_number);
	put_u64(block, 70000);
	put_u64(block, builder->thread);
	put_u64(block, 0x5555555555555555); /* processor, stack */
	put_u64(block, builder->time);
	for (int i = 0; i < 32; i++)
		buf_append_char(block, 0x55);
	put_u32(block, (uint32_t)size_bytes);
	buf_append(block, payload, size_bytes);
	while ((block->size_bytes - start) % 4)
		buf_append_char(block, 0);
}

/* All existing fields, with values that need several bytes. */
static void put_compressed(struct nettrace_builder *builder, uint32_t number, const void *payload,
			   size_t size_bytes)
{
	struct buf *block = &builder->block;

	buf_append_char(block, (char)0xff);
	put_varint(block, number);
	put_varint(block, (uint32_t)(builder->event_number - builder->header_number - 1));
	put_varint(block, builder->thread);
	put_varint(block, 3);
	put_varint(block, 70000);
	put_varint(block, 5);
	put_varint(block, builder->time - builder->header_time);
	for (int i = 0; i < 32; i++)
		buf_append_char(block, 0x77);
	put_varint(block, size_bytes);
	buf_append(block, payload, size_bytes);
	builder->header_number = builder->event_number;
	builder->header_time = builder->time;
}

static void put_blob(struct nettrace_builder *builder, uint32_t number, const void *payload,
		     size_t size_bytes)
{
	builder->time += (uint64_t)1 << 40;
	if (builder->compressed)
		put_compressed(builder, number, payload, size_bytes);
	else
		put_plain(builder, number, payload, size_bytes);
}

void put_event(struct nettrace_builder *builder, uint32_t number, const void *payload,
	       size_t size_bytes)
{
	builder->event_number++;
	put_blob(builder, number, payload, size_bytes);
}

void put_point(struct nettrace_builder *builder, const uint64_t (*threads)[2], uint32_t count)
{
	buf_clear(&builder->block);
	put_u64(&builder->block, 1); /* time */
	put_u32(&builder->block, count);
	for (uint32_t i = 0; i < count; i++) {
		put_u64(&builder->block, threads[i][0]);
		put_u32(&builder->block, (uint32_t)threads[i][1]);
	}
	end_block(builder, "SPBlock");
}

void put_kind(struct nettrace_builder *builder, uint32_t number, const char *provider,
	      uint32_t event_id, uint32_t version)
{
	struct buf payload;

	buf_init(&payload, 4096);
	put_u32(&payload, number);
	put_utf16(&payload, provider);
	put_u32(&payload, event_id);
	put_utf16(&payload, "");
	put_u64(&payload, 0x138);
	put_u32(&payload, version);
	put_u32(&payload, 5);
	put_u32(&payload, 0);
	put_blob(builder, 0, payload.data, payload.size_bytes);
	buf_deinit(&payload);
}
