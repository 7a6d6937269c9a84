/** Signatures of what is no bill that is read, and what to give instead. */
const SIGNATURES: readonly (readonly [bytes: readonly number[], told: string])[] = [
  [
    [0x50, 0x4b, 0x03, 0x04],
    'this is a ZIP archive or an Excel workbook; unpack it, or save the sheet as CSV (UTF-8), and give that',
  ],
  [[0xd0, 0xcf, 0x11, 0xe0], 'this is an Excel workbook; save the sheet as CSV (UTF-8) and give that'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'this is packed with Zstandard; unpack it, or pack it with gzip'],
  [[0x42, 0x5a, 0x68], 'this is packed with bzip2; unpack it, or pack it with gzip'],
  [[0xfd, 0x37, 0x7a, 0x58, 0x5a], 'this is packed with xz; unpack it, or pack it with gzip'],
  [[0x37, 0x7a, 0xbc, 0xaf], 'this is a 7-Zip archive; unpack it and give the file that is in it'],
  [[0x1f, 0x8b], 'this is packed with gzip twice; unpack it once'],
  [[0x25, 0x50, 0x44, 0x46], 'this is a PDF; give the export of costs that the provider offers beside it'],
  [[0x4f, 0x62, 0x6a, 0x01], 'this is an Avro file; export it as CSV, JSON lines or Parquet'],
  [[0x4f, 0x52, 0x43], 'this is an ORC file; export it as CSV or Parquet'],
  [[0xff, 0xfe], 'the text is UTF-16; save it as UTF-8 (in Excel: CSV UTF-8)'],
  [[0xfe, 0xff], 'the text is UTF-16; save it as UTF-8 (in Excel: CSV UTF-8)'],
];

/** Where a tar archive names itself. */
const TAR_AT = 257;
/** So many bytes are looked at for zero bytes, which no text has. */
const TEXT_BYTES = 4_096;

/** What a text is that is a JSON value on its own and neither an object nor a list; undefined for any other text. */
function jsonScalarOf(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return undefined;
    return typeof value === 'string' ? 'text' : typeof value === 'number' ? 'number' : String(value);
  } catch {
    return undefined;
  }
}

/**
 * What the unpacked head of a file is, in a sentence with the remedy, where it is nothing that can be read: an archive, a
 * packing other than gzip, a workbook, a web page, another encoding. Undefined where it may be a bill.
 */
export function foreignContent(head: Buffer, wasPacked: boolean): string | undefined {
  const known = SIGNATURES.find(([bytes]) => bytes.every((byte, at) => head[at] === byte));
  if (known) return known[1];
  if (head.subarray(TAR_AT, TAR_AT + 5).toString('latin1') === 'ustar')
    return 'this is a tar archive; give the files that are in it, one by one';
  if (head.subarray(0, 4).toString('latin1') === 'PAR1')
    return wasPacked
      ? 'this is a Parquet file that is packed with gzip; unpack it, Parquet is packed inside'
      : undefined;
  const text = head.subarray(0, TEXT_BYTES);
  if (/^(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|\?xml|[a-z]+[ >])/i.test(text.toString('latin1')))
    return 'this is a web page or an XML document, perhaps an error that was saved in place of the bill';
  const scalar = head.length <= TEXT_BYTES ? jsonScalarOf(head.toString('utf8')) : undefined;
  if (scalar !== undefined)
    return `this is a JSON ${scalar}, which holds no charges; give the whole answer or export`;
  if (!text.includes(0)) return undefined;
  // Letters of the Latin alphabet have a zero for every other byte.
  const isWide =
    text.length > 3 && (text[0] === 0) !== (text[1] === 0) && (text[2] === 0) !== (text[3] === 0);
  return isWide
    ? 'the text is UTF-16; save it as UTF-8 (in Excel: CSV UTF-8)'
    : 'this is no text; give a CSV (UTF-8), JSON or Parquet file, packed with gzip or not at all';
}
