import type { OrgDb } from '../../db/orgDb.js';
import {
  type AccountContext,
  type AccountName,
  failRunAccount,
  insertExplanationPlan,
  listAccountExplanations,
  listChangedSeries,
  listExplainedAccounts,
  listPendingSeries,
  listRunAccounts,
  listSeriesOfAccount,
  type RunAccount,
  recordAccountFindings,
  recordSeriesExplanations,
  type SeriesName,
  streamSeriesEvidence,
  takeExplainingTurn,
} from '../../db/reconciliation/explanations.js';
import type { GapRun } from '../../db/reconciliation/gapRuns.js';
import { type InvoiceTie, listInvoiceTies, listUploadedTies } from '../../db/reconciliation/matchInputs.js';
import { currentWeights } from '../../db/reconciliation/weightSets.js';
import type { SuspectKey } from '../../domain/billing/providerKeys.js';
import { DomainError } from '../../domain/errors.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import { isProvider, type Provider } from '../../domain/providers.js';
import {
  explainAccount,
  explainSeries,
  explanationFromJson,
  explanationToText,
  type SeriesExplanation,
} from '../../domain/reconciliation/engine/index.js';
import {
  evidenceFromJson,
  type SeriesDayEvidence,
} from '../../domain/reconciliation/evidence/evidenceText.js';

import { ENGINE_VERSION } from '../../domain/reconciliation/matching/inputMark.js';
import { weightsFor } from '../../domain/reconciliation/weights/learn.js';
import type { WeightSet } from '../../domain/reconciliation/weights/weightSet.js';
import { listSuspectKeys } from '../billing/providerKeys.js';
import { digestOf, explainedWindowOf, loadRun, pricesDigest, type RunWork } from './gapRunWork.js';

/** Most suspect keys that an explanation receives, by billed dollars. */
const SUSPECTS_MAX = 10_000;

/** Inputs of an account's explanation besides its days. */
interface Context {
  ties: Record<string, InvoiceTie>;
  suspects: SuspectKey[];
}

export type ExplanationPlan = { turn: 'wait' } | { turn: 'over' } | { turn: 'go'; accounts: number };

/**
 * Decides once, at the run's turn, what it explains again: series with a bucket on a day that the run matched, and all
 * series of an account whose other inputs (prices, other copies of its bills) have changed. If only the facts about its
 * keys have changed, only the account as a whole is explained again. A repeat uses the first decision.
 */
export async function planExplanations(work: RunWork): Promise<ExplanationPlan> {
  const { deps, orgDb, runId } = work;
  const turn = await orgDb.transaction((inside) => takeExplainingTurn(inside, runId));
  if (turn !== 'go') return { turn };
  const run = await loadRun(work);
  const series = await listChangedSeries(orgDb, runId);
  const explained = await listExplainedAccounts(orgDb, run.provider);
  const before = new Map(explained.map((account) => [accountKey(account), account]));
  const contexts = await readContexts(work, run);
  const book = await deps.prices.freshOf(orgDb.orgId);
  const weights = await currentWeights(orgDb);
  const changed = new Set(series.map(accountKey));
  const names = new Map([...explained, ...series].map((name) => [accountKey(name), name]));
  const accounts: AccountContext[] = [];
  for (const [key, name] of [...names].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const context = contextOf(name, contexts.get(key), book, weights);
    const last = before.get(key);
    const needsAll = last !== undefined && (last.stale || last.contextMark !== context.contextMark);
    if (!needsAll && !changed.has(key) && last?.suspectsMark === context.suspectsMark) continue;
    accounts.push(context);
    if (needsAll) series.push(...(await listSeriesOfAccount(orgDb, name, explainedWindowOf(run).fromDay)));
  }
  const distinct = new Map(series.map((one) => [`${accountKey(one)}\n${one.model}`, one]));
  const planned = await orgDb.transaction((inside) =>
    insertExplanationPlan(inside, runId, accounts, [...distinct.values()]),
  );
  return { turn, accounts: planned };
}

const accountKey = ({ provider, accountId }: AccountName) => `${provider}\n${accountId}`;

/** Reads the inputs other than the bills' days, by account; an account without inputs has no entry. */
async function readContexts({ orgDb }: RunWork, run: GapRun): Promise<Map<string, Context>> {
  const window = explainedWindowOf(run);
  const contexts = new Map<string, Context>();
  const of = (name: AccountName): Context => {
    const known = contexts.get(accountKey(name)) ?? { ties: {}, suspects: [] };
    contexts.set(accountKey(name), known);
    return known;
  };
  const ties = [...(await listInvoiceTies(orgDb, window)), ...(await listUploadedTies(orgDb, window))];
  for (const tie of ties) of(tie).ties[tie.month] = tie.tie;
  const { keys } = await listSuspectKeys(orgDb, { ...window, limit: SUSPECTS_MAX });
  for (const key of keys) of({ provider: key.provider, accountId: key.providerAccountId }).suspects.push(key);
  return contexts;
}

function contextOf(
  name: AccountName,
  found: Context | undefined,
  book: PriceBook,
  weights: WeightSet,
): AccountContext {
  const context = found ?? { ties: {}, suspects: [] };
  const prices = isProvider(name.provider) ? pricesDigest(book, name.provider) : '';
  return {
    provider: name.provider,
    accountId: name.accountId,
    context: explanationToText(context),
    contextMark: digestOf(
      JSON.stringify([ENGINE_VERSION, weights.version, prices, Object.entries(context.ties)]),
    ),
    suspectsMark: digestOf(explanationToText(context.suspects)),
  };
}

/**
 * Explains the remaining series of one account one by one, then the account as a whole. Memory holds one series' days
 * and the account's explanations. A repeat continues with the remaining series.
 */
export async function explainRunAccount(work: RunWork, ordinal: number): Promise<void> {
  const { deps, orgDb, runId } = work;
  const account = (await listRunAccounts(orgDb, runId)).find((one) => one.ordinal === ordinal);
  if (!account || !isProvider(account.provider))
    throw new DomainError('not_found', `the gap run explains no account ${ordinal}`);
  if (account.status === 'done') return;
  const run = await loadRun(work);
  const book = await deps.prices.freshOf(orgDb.orgId);
  // Weights are read again, as prices are: if they changed since the plan, the next run explains once more.
  const weights = weightsFor(await currentWeights(orgDb), account.provider);
  const scope = {
    ...{ account, provider: account.provider, book, weights },
    fromDay: explainedWindowOf(run).fromDay,
  };
  for (const model of await listPendingSeries(orgDb, runId, account)) {
    work.checkpoint();
    const explanation = await explainOne(work, scope, model);
    const explained = { model, explanation: explanation === null ? null : explanationToText(explanation) };
    await orgDb.transaction((inside) => recordSeriesExplanations(inside, runId, account, [explained]));
  }
  work.checkpoint();
  const series = (await listAccountExplanations(orgDb, runId, account)).map((json) =>
    explanationFromJson<SeriesExplanation>(json),
  );
  const findings = explainAccount({
    provider: account.provider,
    accountId: account.accountId,
    series,
    suspectKeys: contextOfAccount(account).suspects,
    prices: { agreed: book, list: book.list },
    weights,
  });
  await recordAccountFindings(orgDb, runId, ordinal, explanationToText(findings));
}

/** Records that an account cannot be explained: its published findings stay unchanged. */
export async function failAccount(
  orgDb: OrgDb,
  runId: string,
  ordinal: number,
  message: string,
): Promise<void> {
  await orgDb.transaction((inside) => failRunAccount(inside, runId, ordinal, message));
}

interface Scope {
  account: RunAccount;
  provider: Provider;
  book: PriceBook;
  weights: WeightSet;
  fromDay: string;
}

const contextOfAccount = (account: RunAccount) => explanationFromJson<Context>(account.context);

/** Explains one series; null: it has no days left. */
async function explainOne(work: RunWork, scope: Scope, model: string): Promise<SeriesExplanation | null> {
  const { account, provider, book } = scope;
  const name: SeriesName = { provider, accountId: account.accountId, model };
  const days: SeriesDayEvidence[] = [];
  for await (const json of streamSeriesEvidence(work.orgDb, work.runId, name, scope.fromDay)) {
    const evidence = readEvidence(json);
    if (evidence) days.push(evidence);
  }
  if (days.length === 0) return null;
  return explainSeries({
    ...name,
    provider,
    days,
    prices: { agreed: book, list: book.list },
    weights: scope.weights,
    invoiceTies: new Map(Object.entries(contextOfAccount(account).ties)),
  });
}

/**
 * The evidence of a day; undefined: a version before an upgrade wrote it. The day counts again once a run has compared
 * it.
 */
function readEvidence(json: unknown): SeriesDayEvidence | undefined {
  try {
    return evidenceFromJson(json);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
