/** Freezes a claim's evidence as it is known when the claim is drafted, with its files (docs/evidence.md). */
import { createHash } from 'node:crypto';
import {
  type CountedRow,
  findRunWindow,
  listCountedRows,
  listPublishedSeriesDays,
  type PublishedDay,
} from '../../db/claims/evidence.js';
import { getOrganization } from '../../db/installation/organizations.js';
import type { OrgDb } from '../../db/orgDb.js';
import { currentWeights } from '../../db/reconciliation/weightSets.js';
import type { DraftClaim, DraftDispute } from '../../domain/claims/draft.js';
import { buildEvidence, RateRegister } from '../../domain/claims/evidence/buildEvidence.js';
import { canonicalJson, claimCsv, type JsonValue } from '../../domain/claims/evidence/claimCsv.js';
import type {
  ClaimEvidence,
  EvidenceFile,
  EvidenceMatch,
  EvidenceRow,
} from '../../domain/claims/evidence/claimEvidence.js';
import {
  asStated,
  type CellDraft,
  cellsOfDispute,
  rowsOfCell,
} from '../../domain/claims/evidence/claimedCells.js';
import { grouped } from '../../domain/claims/evidence/documentTexts.js';
import { publicId, publicSourceId } from '../../domain/ids.js';
import { dayOf, isoFromMicros, MICROS_PER_DAY } from '../../domain/period.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import { isProvider } from '../../domain/providers.js';
import { type ExplainedImpacts, explainedImpactsOf } from '../../domain/reconciliation/engine/index.js';
import {
  evidenceFromJson,
  type SeriesDayEvidence,
} from '../../domain/reconciliation/evidence/evidenceText.js';

import { QUANTITY_KINDS } from '../../domain/reconciliation/taxonomy.js';
import type { WeightSet } from '../../domain/reconciliation/weights/weightSet.js';
import type { InvoicePageDeps } from '../invoices/invoiceFiles.js';
import { type ClaimedDay, EVENTS_FILE, readCalls } from './evidenceCalls.js';
import { readEvidenceInvoices } from './evidenceInvoices.js';
import { type LocatedRows, locateRows, type PageReaders, rowId } from './evidencePages.js';

export interface EvidenceDeps extends InvoicePageDeps {
  nowMicros(): bigint;
  /** The organization's prices as stored now. */
  prices: { freshOf(orgId: string): Promise<PriceBook> };
  /** Reads pages of bills again. */
  pages: PageReaders;
}

export interface FrozenEvidence {
  evidence: ClaimEvidence;
  /** Hash of the canonical text of the evidence without its `sha256`; hex. */
  sha256: string;
  files: EvidenceFile[];
  /** Uploaded invoices that the evidence cites. */
  invoiceIds: string[];
}

/** Days before a run's end that its explanations cover. */
const EXPLAINED_DAYS = 400n;

/**
 * Collects and freezes the evidence of a claim that is about to be drafted; changes nothing. Time grows with the days
 * of its series, the pages of its rows and its calls.
 */
export async function freezeEvidence(
  inside: OrgDb,
  draft: DraftClaim,
  deps: EvidenceDeps,
): Promise<FrozenEvidence> {
  const book = await deps.prices.freshOf(inside.orgId);
  const weights = await currentWeights(inside);
  const register = new RateRegister();
  const cells: CellDraft[] = [];
  const series: SeriesWork[] = [];
  for (const [model, disputes] of bySeries(draft)) {
    const one = await readSeries(inside, draft, model, disputes, book, weights);
    series.push(one);
    for (const dispute of disputes) cells.push(...cellsOfDispute(dispute, one, register));
  }
  const rows = await readRows(inside, draft, series, cells);
  const found = cells.map((cell) => {
    const of = rowsOfCell(cell, rows);
    return of.isWhole ? { cell, ...of } : { cell: asStated(cell), ...of };
  });
  const used = new Map(
    found.flatMap(({ cost, usage, told }) => [...cost, ...usage, ...told].map((row) => [rowId(row), row])),
  );
  const located = await locateRows(inside, [...used.values()], deps.pages);
  const calls = await readCalls(inside, series.flatMap(claimedDays(draft)), isOfQuantity(draft));
  const placesOf = (some: readonly CountedRow[]) =>
    some.flatMap((row): EvidenceRow | EvidenceRow[] => located.rows.get(rowId(row)) ?? []);
  const organization = await getOrganization(inside);
  const invoices = await readEvidenceInvoices(inside, draft, deps);
  const built = buildEvidence({
    draft,
    organization: { id: inside.orgId, name: organization.name },
    cells: found.map(({ cell, cost, usage, told }) => ({
      cell,
      rows: placesOf(cost),
      quantityRows: placesOf(usage),
      toldRows: placesOf(told),
      toldQuantity: told.length === 0 ? null : told.reduce((sum, row) => sum + (row.quantity ?? 0n), 0n),
      pagePico: cost.length === 0 ? null : cost.reduce((sum, row) => sum + (row.amountPico ?? 0n), 0n),
    })),
    register,
    priceVersion: book.versionAt(deps.nowMicros()),
    observed: calls.observed,
    matches: series.flatMap((one) => matchesOf(one)),
    invoices: [...invoicesOf(located), ...invoices.refs],
    samples: calls.samples,
    events: {
      file: calls.file ? EVENTS_FILE : null,
      included: calls.included,
      total: calls.total,
      complete: calls.file !== null,
    },
    pages: located.pages,
    notes: [...notesOf({ found, located, calls }), ...invoices.notes],
    nowMicros: deps.nowMicros(),
  });
  const files = [...located.files, ...invoices.files, ...(calls.file ? [calls.file] : [])];
  return { ...fileEvidence(plain(built), files), invoiceIds: invoices.ids };
}

/** The value as it will be read back from storage: without undefined fields. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

interface SeriesWork {
  model: string;
  disputes: readonly DraftDispute[];
  days: PublishedDay[];
  evidence: ReadonlyMap<string, SeriesDayEvidence>;
  explained: ExplainedImpacts[];
  offsetHours: number;
}

function bySeries(draft: DraftClaim): Map<string, DraftDispute[]> {
  const series = new Map<string, DraftDispute[]>();
  for (const dispute of draft.disputes)
    series.set(dispute.model, [...(series.get(dispute.model) ?? []), dispute]);
  return series;
}

async function readSeries(
  inside: OrgDb,
  draft: DraftClaim,
  model: string,
  disputes: readonly DraftDispute[],
  book: PriceBook,
  weights: WeightSet,
): Promise<SeriesWork> {
  const { provider, accountId } = draft;
  const [first] = disputes;
  const run = first && (await findRunWindow(inside, first.evidence.runId));
  const fromDay = run ? dayOf(run.endMicros - EXPLAINED_DAYS * MICROS_PER_DAY) : draft.periodStart;
  const days = await listPublishedSeriesDays(
    inside,
    { provider, accountId, model },
    { fromDay, toDay: '9999-12-31' },
  );
  const evidence = new Map(
    days.flatMap((day): [string, SeriesDayEvidence][] => {
      const read = readEvidence(day.evidence);
      return read ? [[day.day, read]] : [];
    }),
  );
  const explained = isProvider(provider)
    ? explainedImpactsOf({
        provider,
        accountId,
        model,
        days: [...evidence.values()],
        prices: { agreed: book, list: book.list },
        weights,
      })
    : [];
  return { model, disputes, days, evidence, explained, offsetHours: run?.dayOffsets[provider] ?? 0 };
}

/** undefined: the evidence has the format of a version before an upgrade. */
function readEvidence(json: unknown): SeriesDayEvidence | undefined {
  try {
    return json === null ? undefined : evidenceFromJson(json);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

const disputedDays = ({ disputes }: Pick<SeriesWork, 'disputes'>): string[] =>
  [...new Set(disputes.flatMap(({ days }) => days.map(({ day }) => day)))].sort();

/** The counted rows of the claimed days that name one of the series' models. */
async function readRows(
  inside: OrgDb,
  draft: DraftClaim,
  series: readonly SeriesWork[],
  cells: readonly CellDraft[],
): Promise<CountedRow[]> {
  const models = new Set<string>();
  const labels = new Set<string>();
  for (const { evidence, model, disputes } of series) {
    models.add(model);
    for (const day of disputedDays({ disputes })) {
      const of = evidence.get(day);
      for (const cell of [...(of?.billed ?? []), ...(of?.usage ?? [])])
        if (cell.model !== null) models.add(cell.model);
      for (const cell of of?.billed ?? []) if (cell.model === null) labels.add(cell.lineItem);
    }
  }
  return listCountedRows(inside, {
    provider: draft.provider,
    accountId: draft.accountId,
    days: [...new Set(cells.map(({ day }) => day))].sort(),
    models: [...models].sort(),
    labels: [...labels].sort(),
  });
}

const claimedDays =
  ({ provider, accountId }: DraftClaim) =>
  (one: SeriesWork): ClaimedDay[] =>
    disputedDays(one).map((day) => ({
      provider,
      accountId,
      model: one.model,
      day,
      offsetHours: one.offsetHours,
      models: [
        ...new Set([one.model, ...(one.evidence.get(day)?.observed ?? []).map((vector) => vector.model)]),
      ].sort(),
    }));

const isOfQuantity = (draft: DraftClaim): boolean =>
  draft.disputes.some(
    ({ kind, days }) =>
      (QUANTITY_KINDS as readonly string[]).includes(kind) || days.some((day) => day.volumePico !== 0n),
  );

function matchesOf(one: SeriesWork): EvidenceMatch[] {
  const claimed = new Set(disputedDays(one));
  return one.days
    .filter(({ day }) => claimed.has(day))
    .map((day) => ({
      id: publicId('mat', day.matchId),
      day: day.day,
      model: one.model,
      match_status: day.matchStatus,
      confidence: day.grade,
      confidence_score: day.confidenceScore,
      event_count: day.eventCount,
    }));
}

const invoicesOf = ({ sources, invoices }: LocatedRows) =>
  sources.map((source) => ({
    source_id: publicSourceId(source.kind, source.id),
    filename: source.kind === 'file' ? source.filename : null,
    invoice_id: invoices.get(source.id) ?? null,
    fetched_at: isoFromMicros(source.fetchedAtMicros),
    period_start: source.periodStart,
    period_end: source.periodEnd,
  }));

function notesOf({
  found,
  located,
  calls,
}: {
  found: readonly { cell: CellDraft; isWhole: boolean }[];
  located: LocatedRows;
  calls: { file: EvidenceFile | null; total: number };
}): string[] {
  const stated = found.filter(({ cell }) => cell.basis === 'stated').length;
  const partial = found.filter(({ isWhole }) => !isWhole).length;
  const leftOut = located.pages.filter(({ kept }) => kept === 'left_out').length;
  return [
    ...(stated > 0
      ? [
          `The right amount of ${stated} of ${found.length} lines follows from the finding as a whole, not from one quantity and rate.`,
        ]
      : []),
    ...(partial > 0
      ? [
          `The bill’s records for ${partial} of ${found.length} lines are no longer those of the finding: the bill has changed since, or a part of it is disputed.`,
        ]
      : []),
    ...(located.unlocated > 0
      ? [
          `${located.unlocated} records of the bill are shown as they were imported: their page is not kept, or is no longer read as it was.`,
        ]
      : []),
    ...(leftOut > 0
      ? [
          `${leftOut} pages are too large for this pack; the records that the claim rests on are in it, and the sha256 of each page.`,
        ]
      : []),
    ...(calls.file === null && calls.total > 0
      ? [
          `There are ${grouped(String(calls.total))} calls behind the claimed days, more than this pack holds; it has a sample of them.`,
        ]
      : []),
  ];
}

/** The evidence with its hash and the files of its pack; the document is rendered from it at the first request. */
function fileEvidence(
  built: Omit<ClaimEvidence, 'sha256'>,
  gathered: readonly EvidenceFile[],
): Omit<FrozenEvidence, 'invoiceIds'> {
  const sha256 = sha256Of(Buffer.from(canonicalJson(built as unknown as JsonValue)));
  const evidence: ClaimEvidence = { ...built, sha256 };
  const json = (name: string, value: unknown): EvidenceFile => ({
    name,
    mediaType: 'application/json',
    bytes: Buffer.from(`${JSON.stringify(value, null, 1)}\n`),
  });
  const files: EvidenceFile[] = [
    json('claim.json', evidence),
    json('rates.json', evidence.pricing_snapshot),
    json('undercharges.json', evidence.undercharges),
    { name: 'claim.csv', mediaType: 'text/csv; charset=utf-8', bytes: Buffer.from(claimCsv(evidence)) },
    ...gathered,
  ];
  return { evidence, sha256, files };
}

const sha256Of = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
