import { createHash } from 'node:crypto';
import {
  type CountedRow,
  type EvidenceSource,
  listEvidenceSources,
  listPagesOfSource,
  readFileBytes,
} from '../../db/claims/evidence.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { BilledRow, ChargeCategory } from '../../domain/billing/billedRow.js';
import { fxRateOn } from '../../domain/billing/connections.js';
import { type FxRate, parseFxRate } from '../../domain/billing/pageRow.js';
import type {
  EvidenceFile,
  EvidencePage,
  EvidenceRow,
  EvidenceTerm,
} from '../../domain/claims/evidence/claimEvidence.js';
import { placeOfRow, type RecordNumbers } from '../../domain/claims/evidence/placeOfRow.js';
import { publicSourceId } from '../../domain/ids.js';
import { decimalFromPico, decimalFromScaled } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';

/** Finds the pages that a claim's rows were read from, and the place of each row's numbers on them. */

/** A page as it was received, and the settings that it was read with. */
interface PageToLocate {
  bytes: Buffer;
  provider: string;
  format: string;
  /** US dollars for one unit of the bill's currency, by day. */
  fxRateOn(day: string): FxRate;
  asked: ChargeCategory | undefined;
}

/** A record of a page, as adapters/billing/locateRows.ts reads it. */
interface RecordOfPage {
  document: number;
  at: string;
  numbers: RecordNumbers;
  cells: ReadonlyMap<string, string> | null;
  rows: readonly BilledRow[];
}

/** The parts of a bill's readers that locate a row. */
export interface PageReaders {
  locateRecords(page: PageToLocate): AsyncIterable<RecordOfPage>;
  /** The charge category that a page was requested for, from the cursor of the page before it. */
  askedFor(provider: string, previousCursor: string | null): ChargeCategory | undefined;
}

/** Most bytes of pages in a pack; further pages are represented by their records alone. */
const PACK_PAGES_BYTES_MAX = 33_554_432;
const EXTRACT = 'pages/records.jsonl';

export interface LocatedRows {
  /** By `rowId`. */
  rows: ReadonlyMap<string, EvidenceRow>;
  pages: EvidencePage[];
  files: EvidenceFile[];
  sources: EvidenceSource[];
  /** The invoice's name in the records, by source. */
  invoices: ReadonlyMap<string, string>;
  /** Rows that are shown as imported, because their page is missing or is now read differently. */
  unlocated: number;
}

export const rowId = (row: Pick<CountedRow, 'sourceId' | 'rowNo'>): string => `${row.sourceId}/${row.rowNo}`;

/** Finds every row on its original page. Time grows with the pages of the rows' sources. */
export async function locateRows(
  inside: OrgDb,
  rows: readonly CountedRow[],
  readers: PageReaders,
): Promise<LocatedRows> {
  const work = new Locating(readers);
  const ids = [...new Set(rows.map((row) => row.sourceId))].sort();
  const sources = ids.length === 0 ? [] : await listEvidenceSources(inside, ids);
  for (const source of sources) {
    const wanted = new WantedRows(rows.filter((row) => row.sourceId === source.id));
    for await (const page of streamReceivedPages(inside, source)) {
      await work.read(source, page, wanted);
      // Several pages may be in the file's one stream; each is dropped as soon as it was read.
    }
    for (const row of wanted.left()) work.asImported(row);
  }
  return work.result(sources);
}

/** Wanted rows by content; identical charges may occur several times. */
class WantedRows {
  readonly #byKey = new Map<string, CountedRow[]>();

  constructor(rows: readonly CountedRow[]) {
    for (const row of rows) {
      const key = keyOf(row);
      const known = this.#byKey.get(key);
      if (known) known.push(row);
      else this.#byKey.set(key, [row]);
    }
  }

  take(row: BilledRow): CountedRow | undefined {
    return this.#byKey.get(keyOf(row))?.shift();
  }

  left(): CountedRow[] {
    return [...this.#byKey.values()].flat();
  }
}

function keyOf(row: BilledRow | CountedRow): string {
  return JSON.stringify([
    row.feed,
    row.report,
    row.day,
    String(row.periodStartMicros),
    row.lineItem,
    row.model,
    row.tokenClass,
    row.serviceTier,
    row.isBatch,
    row.longContext,
    row.region,
    row.project,
    row.apiKey,
    String(row.quantity),
    String(row.amountPico),
  ]);
}

class Locating {
  readonly #readers: PageReaders;
  readonly #rows = new Map<string, EvidenceRow>();
  readonly #pages: EvidencePage[] = [];
  readonly #files: EvidenceFile[] = [];
  readonly #names = new Map<string, string>();
  readonly #extract: string[] = [];
  readonly #invoices = new Map<string, string>();
  #bytes = 0;
  #unlocated = 0;

  constructor(readers: PageReaders) {
    this.#readers = readers;
  }

  async read(source: EvidenceSource, page: ReceivedPage, wanted: WantedRows): Promise<void> {
    const found: { row: CountedRow; place: EvidenceRow; numbers: RecordNumbers }[] = [];
    if (page.bytes && isAsReceived(page))
      for await (const one of this.#find(source, { ...page, bytes: page.bytes }, wanted)) found.push(one);
    if (found.length === 0 && page.filename === null) return;
    const name = this.#keep(source, page);
    for (const { row, place, numbers } of found) {
      this.#rows.set(
        rowId(row),
        name === undefined ? this.#extracted(place, numbers) : { ...place, page: name },
      );
    }
  }

  async *#find(source: EvidenceSource, page: ReceivedPage & { bytes: Buffer }, wanted: WantedRows) {
    const rateOn = (day: string) => parseFxRate(fxTextOf(source, day) ?? '');
    const asked = this.#readers.askedFor(source.provider, page.previousCursor);
    const pending: CountedRow[] = [];
    const records = this.#readers.locateRecords({
      bytes: page.bytes,
      provider: source.provider,
      format: source.format,
      fxRateOn: rateOn,
      asked,
    });
    for await (const record of records) {
      const said = record.rows.flatMap((row) => wanted.take(row) ?? []);
      this.#noteInvoice(source.id, record);
      if (record.numbers.size === 0) pending.push(...said);
      else if (record.rows.length > 0) {
        for (const row of said) {
          const place = placeOfRow(row, record, fxTextOf(source, row.day));
          if (place) yield { row, place, numbers: record.numbers };
          else this.asImported(row);
        }
      } else {
        const at = pending.findIndex(
          (row) => placeOfRow(row, record, fxTextOf(source, row.day)) !== undefined,
        );
        const [row] = at < 0 ? [] : pending.splice(at, 1);
        const place = row && placeOfRow(row, record, fxTextOf(source, row.day));
        if (row && place) yield { row, place, numbers: record.numbers };
      }
    }
    for (const row of pending) this.asImported(row);
  }

  #noteInvoice(sourceId: string, { cells }: RecordOfPage): void {
    for (const column of INVOICE_COLUMNS) {
      const id = cells?.get(column);
      if (id !== undefined && !this.#invoices.has(sourceId)) this.#invoices.set(sourceId, id.slice(0, 200));
    }
  }

  /** The page's name in the pack; undefined: the pack contains only its records, for checkers. */
  #keep(source: EvidenceSource, page: ReceivedPage): string | undefined {
    const known = this.#names.get(page.sha256);
    if (known !== undefined) return known === '' ? undefined : known;
    const file = `pages/${String(this.#pages.length + 1).padStart(3, '0')}-${nameOf(source, page)}`;
    const bytes = page.bytes !== null && isAsReceived(page) ? page.bytes : null;
    const isKept = bytes !== null && this.#bytes + bytes.length <= PACK_PAGES_BYTES_MAX;
    const isRead = isKept && isText(bytes);
    this.#pages.push({
      file,
      url: page.url,
      filename: page.filename,
      source_id: publicSourceId(source.kind, source.id),
      fetched_at: isoFromMicros(page.fetchedAtMicros),
      provider_request_id: page.providerRequestId,
      bytes: page.sizeBytes,
      sha256: page.sha256,
      format: source.format,
      kept: isKept ? 'whole' : 'left_out',
    });
    this.#names.set(page.sha256, isRead ? file : '');
    if (isKept) {
      this.#bytes += bytes.length;
      this.#files.push({ name: file, mediaType: 'application/octet-stream', bytes });
    }
    return isRead ? file : undefined;
  }

  /** Adds the record's numbers alone, in the order of the file of records. */
  #extracted(place: EvidenceRow, numbers: RecordNumbers): EvidenceRow {
    const document = this.#extract.push(
      JSON.stringify({ document: place.document, at: place.at, numbers: Object.fromEntries(numbers) }),
    );
    const inside = (terms: readonly EvidenceTerm[] | null) =>
      terms?.map(({ at, times, by }) => ({
        at: `/${escaped(at)}`,
        times,
        ...(by === undefined ? {} : { by: `/${escaped(by)}` }),
      })) ?? null;
    return {
      ...place,
      page: EXTRACT,
      document: document - 1,
      at: '/numbers',
      amount: inside(place.amount),
      quantity: inside(place.quantity),
    };
  }

  asImported(row: CountedRow): void {
    this.#unlocated += 1;
    const numbers = new Map<string, string>();
    if (row.amountPico !== null) numbers.set('amount_usd', decimalFromPico(row.amountPico));
    if (row.quantity !== null) numbers.set('quantity', decimalFromScaled(row.quantity, 12));
    const term = (at: string) => (numbers.has(at) ? [{ at, times: '1' }] : null);
    this.#rows.set(
      rowId(row),
      this.#extracted(
        {
          page: '',
          document: 0,
          at: `row ${row.rowNo} of ${row.sourceId}`,
          amount: term('amount_usd'),
          quantity: term('quantity'),
          fx_rate: null,
        },
        numbers,
      ),
    );
  }

  result(sources: EvidenceSource[]): LocatedRows {
    const files = [...this.#files];
    if (this.#extract.length > 0)
      files.push({
        name: EXTRACT,
        mediaType: 'application/x-ndjson',
        bytes: Buffer.from(`${this.#extract.join('\n')}\n`),
      });
    return {
      rows: this.#rows,
      pages: this.#pages,
      files,
      sources,
      invoices: this.#invoices,
      unlocated: this.#unlocated,
    };
  }
}

const INVOICE_COLUMNS = ['bill_invoice_id', 'bill/invoiceid', 'invoiceid', 'invoice_id', 'invoice.id'];

const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** Reads the pages of a bill as they were received: uploaded files, and pages that connections fetched. */

/** Largest file that is read again, bytes: it is held in memory as a whole. */
const FILE_BYTES_MAX = 134_217_728;

/** The exchange rate that was declared with a file, or set on the connection for a day. */
function fxTextOf({ declaredFxRate, settings }: EvidenceSource, day: string): string | null {
  return declaredFxRate ?? (settings === null ? null : (fxRateOn(settings, day) ?? null));
}

/** A page of a bill as it is stored. */
interface ReceivedPage {
  bytes: Buffer | null;
  url: string | null;
  filename: string | null;
  sha256: string;
  sizeBytes: number;
  fetchedAtMicros: bigint;
  providerRequestId: string | null;
  previousCursor: string | null;
}

/** The pages of a source in order; each is held in memory as a whole. */
export async function* streamReceivedPages(
  inside: OrgDb,
  source: EvidenceSource,
): AsyncGenerator<ReceivedPage> {
  if (source.kind === 'file') {
    const isLarge = source.sizeBytes > FILE_BYTES_MAX;
    const bytes = isLarge ? null : await readFileBytes(inside, source.id);
    yield {
      bytes: bytes !== null && bytes.length === source.sizeBytes ? bytes : null,
      url: null,
      filename: source.filename,
      sha256: source.sha256,
      sizeBytes: source.sizeBytes,
      fetchedAtMicros: source.fetchedAtMicros,
      providerRequestId: null,
      previousCursor: null,
    };
    return;
  }
  for (const page of await listPagesOfSource(inside, source.id)) {
    yield {
      bytes: page.body,
      url: `${HOSTS[source.provider] ?? ''}${page.requestPath}`,
      filename: null,
      sha256: page.sha256,
      sizeBytes: page.body.length,
      fetchedAtMicros: page.fetchedAtMicros,
      providerRequestId: page.providerRequestId,
      previousCursor: page.previousCursor,
    };
  }
}

/** Host of each provider's reports. */
const HOSTS: Readonly<Record<string, string>> = {
  openai: 'https://api.openai.com',
  anthropic: 'https://api.anthropic.com',
  azure_openai: 'https://management.azure.com',
  aws_bedrock: 'https://ce.us-east-1.amazonaws.com',
};

const isAsReceived = (page: ReceivedPage): boolean =>
  page.bytes !== null && createHash('sha256').update(page.bytes).digest('hex') === page.sha256;

/** Packed and columnar files are shown as records, so checkers need no reader of such files. */
export const isText = (bytes: Buffer): boolean =>
  !(bytes[0] === 0x1f && bytes[1] === 0x8b) && bytes.subarray(0, 4).toString('latin1') !== 'PAR1';

export function nameOf(source: EvidenceSource, page: ReceivedPage): string {
  const text =
    page.filename ?? `${source.provider}-${page.url?.split('?')[0]?.split('/').at(-1) ?? 'page'}.json`;
  return (
    text
      .replace(/[^A-Za-z0-9._-]+/g, '-')
      .slice(-60)
      .replace(/^[-.]+/, '') || 'page'
  );
}
