import pino from 'pino';
import { readBillingFile } from '../../adapters/billing/file.js';
import { createPageReaders } from '../../adapters/billing/locateRows.js';
import { addAgreements, addEvents } from '../../bin/demo/demoLoad.js';
import { createScreen } from '../../bin/terminal/terminal.js';
import { listNettable, loadDraftDisputes } from '../../db/claims/draftDisputes.js';
import { type DraftClaim, monthsOf, netDraft } from '../../domain/claims/draft.js';
import { findUuid } from '../../domain/ids.js';
import { DEMO_SEED, type Demo, generateDemo } from '../../lab/demo/generateDemo.js';
import { readImport } from '../../usecases/billing/readImport.js';
import type { EvidenceDeps } from '../../usecases/claims/freezeEvidence.js';
import { PriceBookHolder } from '../../usecases/pricing/priceBookHolder.js';
import type { TestApi, TestOrganization } from './api.js';
import { uploadBill } from './bills.js';
import { gapRunsOf } from './incrementalRuns.js';
import { yesterday } from './plantedFaults.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const screen = createScreen(false, pino({ level: 'silent' }));

/** An organization with the demo's calls and bills, compared, and every finding that can be disputed in a dispute. */
export interface ClaimedDemo {
  organization: TestOrganization;
  demo: Demo;
  deps: EvidenceDeps;
  /** Of every dispute: its public id and kind. */
  disputes: Json[];
  /** The claim over some of them, as it would be made. */
  draftOf(ids: readonly string[]): Promise<DraftClaim>;
}

/** Brings the demo in without an engine: the steps of an import and of a run, one after the other. */
export async function claimDemo(api: TestApi, name?: string): Promise<ClaimedDemo> {
  const organization = await api.addOrganization(name);
  const client = { base: api.baseUrl, key: organization.adminKey };
  const demo = generateDemo({ seed: DEMO_SEED, endDay: yesterday });
  await addAgreements(client, demo);
  await addEvents(client, demo, screen);
  for (const { provider, account, name: filename, text } of demo.files) {
    const { body } = await uploadBill(api, text, { provider, account }, { key: client.key, filename });
    const deps = { database: api.database.database, readBillingFile };
    const id = findUuid('imp', body.import_id) ?? '';
    await readImport(deps, organization.orgDb, id, new AbortController().signal);
  }
  const nowMicros = BigInt(Date.now()) * 1_000n;
  const runs = await gapRunsOf(api, () => nowMicros);
  await runs.run(organization, '90d' as '30d');
  await confirmAll(api, client.key);
  const { disputes } = (await api.get('/api/v1/financial/disputes?limit=1000', client.key)).body;
  const prices = await PriceBookHolder.open(api.database.database, {
    nowMs: () => performance.now(),
    onFailure: () => undefined,
  });
  return {
    organization,
    demo,
    deps: { nowMicros: () => nowMicros, prices, pages: createPageReaders({}) },
    disputes,
    draftOf: (ids) => draftOf(organization, ids),
  };
}

async function confirmAll(api: TestApi, key: string): Promise<void> {
  const queue = (await api.get('/api/v1/financial/review-queue?limit=1000', key)).body;
  for (const { id, kind } of queue.items) {
    if (kind === 'policy') continue;
    await api.post(`/api/v1/financial/review-queue/${id}/confirm`, {}, key);
  }
}

async function draftOf({ orgDb }: TestOrganization, publicIds: readonly string[]): Promise<DraftClaim> {
  const ids = publicIds.map((id) => findUuid('dsp', id) ?? '');
  const disputes = await loadDraftDisputes(orgDb, ids);
  const [first] = disputes;
  if (!first) throw new RangeError('a draft is of at least one dispute');
  const account = { provider: first.provider, accountId: first.accountId };
  const undercharges = await listNettable(orgDb, account, monthsOf(disputes));
  const draft = netDraft(first.id, { disputes, undercharges });
  if (!draft) throw new RangeError('nothing is left to ask for');
  return draft;
}
