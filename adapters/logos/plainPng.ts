import { inflateSync } from 'node:zlib';
import { invalidLogo } from './svgTree.js';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const SIDE_MAX = 4_096;
/** 8 bytes each at most. */
const PIXELS_MAX = 8_388_608;
/** The chunks that an image is drawn from; everything else, such as animation, profiles and texts, is left out. */
const KEPT = new Set(['IHDR', 'PLTE', 'tRNS', 'IDAT', 'IEND']);
const CHANNELS: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

export function isPng(bytes: Buffer): boolean {
  return bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE);
}

/** The still image of a PNG file and nothing else, once its data is known to be whole. Error invalid_logo. */
export function plainPng(bytes: Buffer): Buffer {
  const parts: Buffer[] = [SIGNATURE];
  const data: Buffer[] = [];
  let header: Buffer | undefined;
  for (let at = SIGNATURE.length; ; ) {
    if (at + 12 > bytes.length) throw cut();
    const length = bytes.readUInt32BE(at);
    const end = at + 12 + length;
    if (end > bytes.length) throw cut();
    const type = bytes.toString('latin1', at + 4, at + 8);
    const content = bytes.subarray(at + 8, end - 4);
    if (header === undefined) {
      if (type !== 'IHDR' || length !== 13) throw invalidLogo('the PNG does not begin with a header');
      header = content;
      assertSize(header);
    }
    if (type === 'IDAT') data.push(content);
    if (KEPT.has(type)) parts.push(bytes.subarray(at, end));
    if (type === 'IEND') break;
    at = end;
  }
  assertWhole(header, Buffer.concat(data));
  return Buffer.concat(parts);
}

const cut = () => invalidLogo('the PNG is cut off: upload the whole file');

function assertSize(header: Buffer): void {
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  if (width === 0 || height === 0) throw invalidLogo('the PNG has no pixels');
  if (width > SIDE_MAX || height > SIDE_MAX || width * height > PIXELS_MAX)
    throw invalidLogo(
      `the PNG has ${width} × ${height} pixels: at most ${SIDE_MAX} a side and ${PIXELS_MAX} together`,
    );
}

/** Left and top edge and step of each pass of an interlaced image. */
const PASSES = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const;

/** Unpacks the pixels up to what the header promises: neither less, nor a byte more. */
function assertWhole(header: Buffer, data: Buffer): void {
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const channels = CHANNELS[header[9] ?? -1];
  if (channels === undefined) throw invalidLogo('the PNG has an unknown kind of colours');
  const bits = channels * (header[8] ?? 0);
  const bytesOf = (columns: number, rows: number) =>
    columns === 0 || rows === 0 ? 0 : rows * (1 + Math.ceil((columns * bits) / 8));
  const expected =
    header[12] === 1
      ? PASSES.reduce(
          (sum, [left, top, right, down]) =>
            sum + bytesOf(Math.ceil((width - left) / right), Math.ceil((height - top) / down)),
          0,
        )
      : bytesOf(width, height);
  let size: number;
  try {
    size = inflateSync(data, { maxOutputLength: expected + 1 }).length;
  } catch {
    throw invalidLogo('the pixels of the PNG cannot be read: it is damaged');
  }
  if (size !== expected) throw invalidLogo('the PNG has not the pixels that its header promises');
}
