import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { checkCells } from './checkCells.js';
import { checkCsv, checkEvents, checkSums } from './checkSums.js';
import { canonicalText, Difference, decimalText, type JsonNode, parseDecimal, readJson } from './exact.js';

export interface Checked {
  what: string;
  count: number;
  note: string;
}

export interface Verified {
  checks: Checked[];
  /** In the order in which they were found; empty: the pack is valid. */
  differences: Difference[];
  /** The claimed amount as a sentence; undefined: it cannot be read. */
  claim: string | undefined;
}

const FORMAT = 'trueup-claim-evidence/1';

/** `verifyPack` for a file; a file that is not a pack is a difference. */
export function verifyFile(path: string): Verified {
  try {
    return verifyPack(readPack(path));
  } catch (error) {
    if (!(error instanceof Difference)) throw error;
    return { checks: [], differences: [error], claim: undefined };
  }
}

/**
 * Verifies a pack of evidence from its files alone: that they match the manifest, and that the claim follows from the
 * provider's pages, the calls and the rates. It has separate arithmetic and parsers and shares no code with the
 * producer of the claim. A pack with wrong hashes is still checked, to find the line.
 */
export function verifyPack(files: ReadonlyMap<string, Buffer>): Verified {
  const checks: Checked[] = [];
  const differences: Difference[] = [];
  const check = (work: () => readonly Checked[]) => {
    try {
      checks.push(...work());
    } catch (error) {
      if (!(error instanceof Difference)) throw error;
      differences.push(error);
    }
  };
  let claim: JsonNode | undefined;
  check(() => checkManifest(files));
  check(() => {
    claim = onlyDocument(files, 'claim.json');
    return checkHash(claim);
  });
  const read = claim;
  if (read) {
    check(() => checkCopies(files, read));
    check(() => checkNumbers(read));
    check(() => checkPages(files, read));
    check(() => checkCells(files, read));
    check(() => checkSums(read));
    check(() => checkEvents(files, read));
    check(() => checkCsv(files, read));
  }
  return { checks, differences, claim: read && claimSentence(read) };
}

/** The claimed amount and its recipient. */
function claimSentence(claim: JsonNode): string | undefined {
  const of = (name: string) => claim.fields.get('claim')?.fields.get(name)?.text;
  const asked = claim.fields.get('totals')?.fields.get('recoverable_usd_exact')?.text;
  if (asked === undefined) return undefined;
  return `${of('id')}: ${asked} US dollars of ${of('provider')} account ${of('provider_account_id')}, ${of('period_start')} to ${of('period_end')}`;
}

function onlyDocument(files: ReadonlyMap<string, Buffer>, name: string): JsonNode {
  const bytes = files.get(name);
  if (!bytes) throw new Difference(name, undefined, 'is missing');
  const [node, more] = readJson(name, bytes.toString('utf8'));
  if (!node || more) throw new Difference(name, more?.line, 'is not one JSON document');
  return node;
}

const sha256Of = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');

const MEDIA_TYPES: readonly [RegExp, string][] = [
  [/^pages\/records\.jsonl$|^events\.jsonl$/, 'application/x-ndjson'],
  [/^pages\//, 'application/octet-stream'],
  [/\.json$/, 'application/json'],
  [/\.csv$/, 'text/csv; charset=utf-8'],
  [/\.pdf$/, 'application/pdf'],
  [/^invoices\/.*\.png$/, 'image/png'],
];

/** Verifies that every file has the size and sha256 of the manifest, and that the manifest lists no others. */
function checkManifest(files: ReadonlyMap<string, Buffer>): Checked[] {
  const manifest = onlyDocument(files, 'manifest.json');
  const listed = manifest.fields.get('files')?.items ?? [];
  const text = (node: JsonNode | undefined) => node?.text ?? '';
  for (const entry of listed) {
    const path = text(entry.fields.get('path'));
    const bytes = files.get(path);
    if (!bytes)
      throw new Difference('manifest.json', entry.line, `lists ${path}, which the pack does not hold`);
    const sha256 = entry.fields.get('sha256');
    const size = entry.fields.get('size_bytes');
    if (text(size) !== String(bytes.length))
      throw new Difference(
        path,
        undefined,
        `has ${bytes.length} bytes; manifest.json, line ${size?.line}, states ${text(size)}`,
      );
    if (text(sha256) !== sha256Of(bytes))
      throw new Difference(
        path,
        undefined,
        `does not have the sha256 that manifest.json states in line ${sha256?.line}`,
      );
  }
  const names = listed.map((entry) => text(entry.fields.get('path')));
  const extra = [...files.keys()].find((name) => name !== 'manifest.json' && !names.includes(name));
  if (extra !== undefined) throw new Difference(extra, undefined, 'is in the pack and not in its manifest');
  const claim = onlyDocument(files, 'claim.json');
  const written = {
    format: FORMAT,
    claim_id: text(claim.fields.get('claim')?.fields.get('id')),
    evidence_sha256: text(claim.fields.get('sha256')),
    files: names.map((path) => ({
      path,
      media_type: MEDIA_TYPES.find(([pattern]) => pattern.test(path))?.[1] ?? '',
      size_bytes: files.get(path)?.length ?? 0,
      sha256: sha256Of(files.get(path) ?? ''),
    })),
  };
  const expected = `${JSON.stringify(written, null, 1)}\n`;
  const found = files.get('manifest.json')?.toString('utf8') ?? '';
  if (found !== expected)
    throw new Difference(
      'manifest.json',
      firstOtherLine(found, expected),
      'is not the manifest of this claim',
    );
  return [{ what: 'sha256 and size of every file', count: names.length, note: '' }];
}

/** The first line at which two texts differ, from 1. */
function firstOtherLine(a: string, b: string): number {
  const [left, right] = [a.split('\n'), b.split('\n')];
  const at = left.findIndex((line, place) => line !== right[place]);
  return (at < 0 ? left.length : at) + 1;
}

/** Verifies the hash in claim.json: that of its canonical text without the hash. */
function checkHash(claim: JsonNode): Checked[] {
  const own = claim.fields.get('sha256');
  const hash = sha256Of(canonicalText(claim, new Set(['sha256'])));
  if (own?.text !== hash) throw new Difference('claim.json', own?.line, 'sha256 does not match the content');
  if (claim.fields.get('format')?.text !== FORMAT)
    throw new Difference('claim.json', claim.fields.get('format')?.line, `is not of the form ${FORMAT}`);
  return [{ what: 'sha256 of the evidence itself', count: 1, note: '' }];
}

/** Verifies that files which repeat a part of claim.json equal it. */
function checkCopies(files: ReadonlyMap<string, Buffer>, claim: JsonNode): Checked[] {
  const copies: [string, string][] = [
    ['rates.json', 'pricing_snapshot'],
    ['undercharges.json', 'undercharges'],
  ];
  for (const [file, name] of copies) {
    const copy = onlyDocument(files, file);
    const of = claim.fields.get(name);
    const line = of && firstDifference(copy, of);
    if (!of || line !== undefined) throw new Difference(file, line, `differs from claim.json as ${name}`);
  }
  return [{ what: 'rates.json and undercharges.json against claim.json', count: copies.length, note: '' }];
}

/** The line of the first value of `a` that differs in `b`, comparing numbers as written. */
function firstDifference(a: JsonNode, b: JsonNode): number | undefined {
  if (
    a.kind !== b.kind ||
    a.text !== b.text ||
    a.items.length !== b.items.length ||
    a.fields.size !== b.fields.size
  )
    return a.line;
  for (const [at, item] of a.items.entries()) {
    const line = firstDifference(item, b.items[at] as JsonNode);
    if (line !== undefined) return line;
  }
  for (const [name, field] of a.fields) {
    const other = b.fields.get(name);
    const line = other ? firstDifference(field, other) : field.line;
    if (line !== undefined) return line;
  }
  return undefined;
}

/** Verifies that each number equals the exact decimal beside it, within the precision of a number. */
function checkNumbers(claim: JsonNode): Checked[] {
  let count = 0;
  const walk = (node: JsonNode) => {
    for (const item of node.items) walk(item);
    for (const [name, field] of node.fields) {
      walk(field);
      const exact = node.fields.get(`${name}_exact`);
      if (exact) {
        count += 1;
        if (field.text !== JSON.stringify(Number(exact.text)))
          throw new Difference(
            'claim.json',
            field.line,
            `${name} is ${field.text}, and ${name}_exact ${exact.text}`,
          );
      }
      if (name.endsWith('_exact') && field.kind === 'string') assertPlain(name, field);
    }
  };
  walk(claim);
  return [{ what: 'numbers against their exact decimals', count, note: '' }];
}

function assertPlain(name: string, field: JsonNode): void {
  const value = parseDecimal(field.text);
  if (value === undefined || decimalText(value) !== field.text)
    throw new Difference('claim.json', field.line, `${name} is not a decimal`);
}

/** Verifies the statements of claim.json about the provider's pages. */
function checkPages(files: ReadonlyMap<string, Buffer>, claim: JsonNode): Checked[] {
  const pages = claim.fields.get('source_pages')?.items ?? [];
  const whole = pages.filter((page) => page.fields.get('kept')?.text === 'whole');
  for (const page of whole) {
    const file = page.fields.get('file')?.text ?? '';
    const bytes = files.get(file);
    if (
      !bytes ||
      page.fields.get('bytes')?.text !== String(bytes.length) ||
      page.fields.get('sha256')?.text !== sha256Of(bytes)
    )
      throw new Difference(file, undefined, `is not the page of claim.json, line ${page.line}`);
  }
  const known = new Set([...whole.map((page) => page.fields.get('file')?.text), 'pages/records.jsonl']);
  const extra = [...files.keys()].find((name) => name.startsWith('pages/') && !known.has(name));
  if (extra !== undefined) throw new Difference(extra, undefined, 'is a page that claim.json does not name');
  const note = pages.length > whole.length ? `${pages.length - whole.length} are too large for the pack` : '';
  return [{ what: "the provider's pages, byte for byte", count: whole.length, note }];
}

// A pack is a tar (POSIX ustar) under gzip, read into memory as a whole.
const BLOCK = 512;
const UNPACKED_BYTES_MAX = 2_147_483_647;

/** The files of a pack by name. Throws Difference for an incomplete pack. */
function readPack(path: string): Map<string, Buffer> {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw new Difference(
      path,
      undefined,
      code === 'ENOENT' ? 'there is no such file' : `cannot be read (${code})`,
    );
  }
  return unpack(path, bytes);
}

/** `readPack` for bytes; `path` is the name in differences. */
export function unpack(path: string, bytes: Buffer): Map<string, Buffer> {
  let tar: Buffer;
  try {
    tar = gunzipSync(bytes, { maxOutputLength: UNPACKED_BYTES_MAX });
  } catch {
    throw new Difference(path, undefined, 'cannot be unpacked: it is cut or damaged');
  }
  const files = new Map<string, Buffer>();
  let at = 0;
  for (; at + BLOCK <= tar.length; ) {
    const header = tar.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) break;
    const { name, size } = readHeader(path, header);
    const body = tar.subarray(at + BLOCK, at + BLOCK + size);
    if (body.length !== size) throw new Difference(path, undefined, `${name} breaks off`);
    if (files.has(name)) throw new Difference(path, undefined, `holds ${name} twice`);
    files.set(name, body);
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  if (!tar.subarray(at).every((byte) => byte === 0))
    throw new Difference(path, undefined, 'holds something behind its end');
  return files;
}

function readHeader(path: string, header: Buffer): { name: string; size: number } {
  const text = (from: number, to: number) =>
    (header.subarray(from, to).toString('utf8').split('\u0000')[0] ?? '').trim();
  let sum = 0;
  header.forEach((byte, place) => {
    sum += place >= 148 && place < 156 ? 32 : byte;
  });
  const size = text(124, 136);
  const prefix = text(345, 500);
  if (Number.parseInt(text(148, 156), 8) !== sum || !/^[0-7]+$/.test(size) || text(156, 157) !== '0')
    throw new Difference(path, undefined, 'is no tar of plain files');
  return { name: prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`, size: Number.parseInt(size, 8) };
}

/** The checks as a table, and the differences, the first one first. */
export function reportOf({ checks, differences, claim }: Verified): string {
  const width = Math.max(...checks.map(({ what }) => what.length), 0);
  const rows = checks.map(({ what, count, note }) =>
    `  ${what.padEnd(width)}  ${String(count).padStart(8)}${note === '' ? '' : `   ${note}`}`.trimEnd(),
  );
  // A line is more precise than the sha256 of a file.
  const [first] = [...differences].sort(
    (a, b) => Number(a.line === undefined) - Number(b.line === undefined),
  );
  const also = differences.filter((one) => one !== first);
  const end = first
    ? ['', `DIFFERENCE ${sentenceOf(first)}`, ...also.map((one) => `  also: ${sentenceOf(one)}`)]
    : ['', 'Everything in the pack agrees.'];
  return `${[...(claim === undefined ? [] : [claim, '']), ...rows, ...end].join('\n')}\n`;
}

const sentenceOf = ({ file, line, message }: Difference): string =>
  `${file}${line === undefined ? '' : `, line ${line}`}: ${message}.`;
