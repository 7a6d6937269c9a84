import { createHash } from 'node:crypto';
import * as evidence from '../../../../db/claims/evidence.js';
import * as events from '../../../../db/claims/evidence.js';
import * as files from '../../../../db/claims/evidence.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import { dayOf } from '../../../../domain/period.js';
import { readCalls } from '../../../../usecases/claims/evidenceCalls.js';
import { getClaimPdf, getEvidenceFile, packClaim } from '../../../../usecases/claims/evidenceFiles.js';
import {
  locateRows,
  type PageReaders,
  streamReceivedPages,
} from '../../../../usecases/claims/evidencePages.js';
import { freezeEvidence } from '../../../../usecases/claims/freezeEvidence.js';
import { testInvoicePages } from '../../../support/blobs.js';
import { storeClaim } from '../../../support/claims.js';
import type { Owned } from '../ownedThings.js';
import { draftOver } from './drafts.js';
import type { TenancyCase } from './tenancyCase.js';

/** No page is read again: rows are shown as they were imported. */
const PAGES: PageReaders = { locateRecords: async function* () {}, askedFor: () => undefined };
const FILE = 'claim.json' as const;
const ALL_ACCOUNTS = '';

const countedOf = ({ countedRow: { provider, day, model } }: Owned) => ({
  ...{ provider, accountId: ALL_ACCOUNTS, days: [day], models: [model], labels: [] },
});

const callsOf = ({ live }: Owned): events.EventsOfDay => ({
  ...{ provider: live.billedBy, accountId: ALL_ACCOUNTS, models: [live.responseModel ?? live.model] },
  ...{ fromMicros: live.endMicros, toMicros: live.endMicros + 1n },
});

/** A row of an import of the owner, independent of the caller. */
const rowOf = ({ importId, day, marker }: Owned): evidence.CountedRow => ({
  ...{ sourceId: importId, rowNo: 1, accountId: marker, feed: 'cost', report: '', day },
  ...{ periodStartMicros: 0n, periodEndMicros: 1n, lineItem: '', model: null, tokenClass: 'other' },
  ...{ serviceTier: 'standard', isBatch: null, longContext: null, region: null, project: null, apiKey: null },
  ...{ quantity: null, amountPico: 1n, currency: 'USD', originalAmount: 1n },
});

/** Functions that read the inputs of evidence, and its files. */
export const CLAIM_EVIDENCE_CASES: Record<string, TenancyCase> = {
  listPublishedSeriesDays: (db, { publishedSeries }) =>
    evidence.listPublishedSeriesDays(db, publishedSeries, { fromDay: '2020-01-01', toDay: '2100-01-01' }),
  findRunWindow: (db, { runId }) => evidence.findRunWindow(db, runId),
  listCountedRows: (db, of) => evidence.listCountedRows(db, countedOf(of)),
  listEvidenceSources: (db, { importId }) => evidence.listEvidenceSources(db, [importId]),
  listPagesOfSource: (db, { syncSourceId }) => evidence.listPagesOfSource(db, syncSourceId),
  readFileBytes: (db, { importId }) => evidence.readFileBytes(db, importId),
  countEventsOfDay: (db, of) => events.countEventsOfDay(db, callsOf(of)),
  listEventsOfDay: (db, of) => events.listEventsOfDay(db, callsOf(of), 10),
  readCalls: (db, of) => {
    const { provider, accountId, models } = callsOf(of);
    const day = { provider, accountId, models, model: of.live.model, offsetHours: 0 };
    return readCalls(db, [{ ...day, day: dayOf(of.live.endMicros) }], true);
  },
  streamReceivedPages: async (db, { syncSourceId, provider }) => {
    const pages = [];
    for await (const page of streamReceivedPages(db, sourceOf(syncSourceId, provider))) pages.push(page);
    return pages;
  },
  locateRows: (db, of) => locateRows(db, [rowOf(of)], PAGES),
  freezeEvidence: (db, of) =>
    db.transaction(async (inside) => {
      const prices = { freshOf: async () => of.prices };
      const draft = await draftOver(inside, of.openDisputeId, NO_ID);
      return freezeEvidence(inside, draft, {
        nowMicros: () => 1n,
        prices,
        pages: PAGES,
        ...testInvoicePages(),
      });
    }),
  findClaimFile: (db, { evidencedId }) => files.findClaimFile(db, evidencedId, FILE),
  listClaimFiles: (db, { evidencedId }) => files.listClaimFiles(db, evidencedId),
  insertClaimFile: (db, { evidencedId, marker }) =>
    db.transaction((inside) =>
      files.insertClaimFile(inside, evidencedId, sha256Of(marker), aFile('claim.pdf', marker)),
    ),
  insertClaimFiles: (db, { evidencedId, marker }) =>
    files.insertClaimFiles(db, evidencedId, [aFile('claim.csv', marker)]),
  getEvidenceFile: (db, { evidencedId }) => getEvidenceFile(db, evidencedId, FILE),
  getClaimPdf: (db, { evidencedId, marker }) =>
    getClaimPdf(db, evidencedId, { renderClaim: async () => Buffer.from(marker) }),
  packClaim: (db, { evidencedId, marker }) =>
    packClaim(db, evidencedId, { renderClaim: async () => Buffer.from(marker) }),
};

const aFile = (name: string, text: string) => ({
  ...{ name, mediaType: 'application/pdf', bytes: Buffer.from(text) },
});

const sourceOf = (id: string, provider: string): evidence.EvidenceSource => ({
  ...{ id, kind: 'api', provider, filename: '', format: 'openai_pages', sha256: '', sizeBytes: 0 },
  ...{ declaredFxRate: null, settings: null, fetchedAtMicros: 0n, periodStart: null, periodEnd: null },
});

const NO_ID = '00000000-0000-7000-8000-000000000000';
const evidenceOf = (marker: string) => ({ pricing_snapshot: { version: marker } });
const sha256Of = (marker: string) =>
  createHash('sha256')
    .update(JSON.stringify(evidenceOf(marker)))
    .digest('hex');

export interface OwnedEvidence {
  /** A series with a published day. */
  publishedSeries: evidence.ClaimedSeries;
  /** Identifies a counted row of a bill. */
  countedRow: { provider: string; day: string; model: string };
  /** The source of a sync's rows. */
  syncSourceId: string;
  /** A claim with a file. */
  evidencedId: string;
}

/** Creates the data of the cases above, from the results of a sync and a run. */
export async function makeEvidence(db: OrgDb, marker: string): Promise<OwnedEvidence> {
  const { id: evidencedId } = await storeClaim(db, { evidence: evidenceOf(marker), by: marker });
  await files.insertClaimFiles(db, evidencedId, [
    {
      ...{
        name: FILE,
        mediaType: 'application/json',
        bytes: Buffer.from(JSON.stringify({ ...evidenceOf(marker), sha256: sha256Of(marker) })),
      },
    },
  ]);
  return {
    evidencedId,
    publishedSeries: await first<evidence.ClaimedSeries>(
      db,
      `select p.provider, p.provider_account_id as "accountId", b.model from gap_published p
       join gap_buckets b on b.org_id = p.org_id and b.run_id = p.run_id and b.provider = p.provider
         and b.provider_account_id = p.provider_account_id and b.width = 'day' and b.bucket = p.day::timestamptz
       where p.org_id = $1 and b.evidence is not null order by p.day, b.model limit 1`,
    ),
    countedRow: await first(
      db,
      `select r.provider, r.day, r.model from billing_rows r
       join billing_days d on d.org_id = r.org_id and d.source_id = r.source_id and d.day = r.day and d.superseded_at is null
       where r.org_id = $1 and r.model is not null and r.charge_category = 'usage' order by r.day desc, r.row_no limit 1`,
    ),
    syncSourceId: (
      await first<{ id: string }>(
        db,
        `select c.source_id as id from sync_chunks c join sync_pages s on s.org_id = c.org_id and s.run_id = c.run_id and s.ordinal = c.ordinal
         where c.org_id = $1 and c.source_id is not null order by c.ordinal limit 1`,
      )
    ).id,
  };
}

async function first<T extends object>(db: OrgDb, statement: string): Promise<T> {
  const [row] = await db.rows<T>(statement, [db.orgId]);
  if (!row) throw new Error('syncs and runs leave something');
  return row;
}
