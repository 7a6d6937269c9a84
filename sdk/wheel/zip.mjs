import { crc32, deflateRawSync } from 'node:zlib';

/** Writes zip archives whose bytes depend on nothing but their files: no time, no owner, one order. */

const LOCAL_HEADER = 0x04034b50;
const CENTRAL_HEADER = 0x02014b50;
const END = 0x06054b50;
const VERSION = 20;
/** Names in UTF-8. */
const FLAGS = 0x0800;
const DEFLATED = 8;
/** 1980-01-01 00:00, the first time that the format can express. */
const DATE = 0x0021;
/** Unix, a regular file, readable by all. */
const MADE_BY = (3 << 8) | VERSION;
const MODE = 0o100644 * 2 ** 16;
const FILES_MAX = 65_535;

/** @param files content by name, written in this order; below 4 GB together. */
export function zip(files) {
  if (files.size > FILES_MAX) throw new Error(`a zip archive has at most ${FILES_MAX} files`);
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const [name, content] of files) {
    const nameBytes = Buffer.from(name, 'utf8');
    const deflated = deflateRawSync(content, { level: 9 });
    // Shared by both headers: versions, flags, method, time, date, checksum, sizes, length of the name and of extras.
    const common = Buffer.alloc(26);
    common.writeUInt16LE(VERSION, 0);
    common.writeUInt16LE(FLAGS, 2);
    common.writeUInt16LE(DEFLATED, 4);
    common.writeUInt16LE(DATE, 8);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(deflated.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(nameBytes.length, 22);
    parts.push(number32(LOCAL_HEADER), common, nameBytes, deflated);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(MODE, 6);
    rest.writeUInt32LE(offset, 10);
    directory.push(number32(CENTRAL_HEADER), number16(MADE_BY), common, rest, nameBytes);
    offset += 4 + common.length + nameBytes.length + deflated.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.size, 4);
  end.writeUInt16LE(files.size, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, central, number32(END), end]);
}

function number16(value) {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function number32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
