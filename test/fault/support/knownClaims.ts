import { expect } from 'vitest';
import type { RawAnswer } from '../../api/support/requests.js';
import { type ClaimRequest, disputesOf, type ModelClaim, shownAs } from './claimModel.js';
import type { ClaimSystem } from './claimSystem.js';

/** A request that was answered for good under an Idempotency-Key. */
export interface Kept {
  claim: number;
  request: ClaimRequest;
  once: string;
  answer: RawAnswer;
}

/** The expected state of the claims, of Temporal, and of the answers. */
export interface Known {
  ids: string[];
  claims: ModelClaim[];
  /** Times of each claim's history, as they were first shown. */
  times: string[][];
  notices: number[];
  /** The notices that each claim has got, by version and name. */
  reminded: Set<string>[];
  /** Claims whose notice is due and cannot be sent yet, with the notice. */
  owed: Map<number, string>;
  isLineWhole: boolean;
  isWorking: boolean;
  kept: Kept[];
}

/** Compares every claim with its expected state, and checks that nothing else happened. */
export async function compare(known: Known, system: ClaimSystem): Promise<void> {
  await Promise.all(known.claims.map((_, at) => compareOne(known, system, at)));
}

/** Compares one claim, by its index. */
export async function compareOne(known: Known, system: ClaimSystem, at: number): Promise<void> {
  const claim = known.claims[at] as ModelClaim;
  const id = known.ids[at] as string;
  const [shown, aside] = await Promise.all([system.shown(id), system.aside(id)]);
  if (claim.isGone) {
    expect(shown).toBeUndefined();
    return;
  }
  const events = shown.events.map(({ at: _at, actor: _actor, ...event }: Record<string, unknown>) => event);
  const outcomes = shown.outcomes.map(
    ({ at: _at, actor: _actor, claim_id: _id, ...outcome }: Record<string, unknown>) => outcome,
  );
  const comparable = { ...shown, events, outcomes, next_statuses: [...shown.next_statuses].sort() };
  expect(comparable).toMatchObject(shownAs(claim));
  expect(events.length).toBe(claim.history.length);
  expect(outcomes.length).toBe((shownAs(claim).outcomes as unknown[]).length);
  expectTimes(known, at, shown);
  expect(aside.disputes).toEqual([disputesOf(claim)]);
  expect(aside.logged).toBe(claim.history.length - 1);
  if (!known.owed.has(at)) expect(aside.notices).toBe(known.notices[at]);
}

/** Times are the database's: they are compared with each other, and with earlier answers. */
// biome-ignore lint/suspicious/noExplicitAny: an answer that the API's own schemas have checked
function expectTimes(known: Known, at: number, shown: any): void {
  const times: string[] = shown.events.map((event: { at: string }) => event.at);
  expect(times.slice(0, known.times[at]?.length)).toEqual(known.times[at]);
  expect([...times].sort((a, b) => Date.parse(a) - Date.parse(b))).toEqual(times);
  known.times[at] = times;
  const timeOf = (statuses: string[]) =>
    shown.events.find((event: { to_status: string }) => statuses.includes(event.to_status))?.at ?? null;
  expect(shown.submitted_at).toBe(timeOf(['submitted_to_provider']));
  expect(shown.resolved_at).toBe(timeOf(['credit_issued', 'partial', 'denied']));
  for (const outcome of shown.outcomes) expect(outcome.at).toBe(shown.resolved_at);
}
