import type fc from 'fast-check';
import { expect } from 'vitest';
import type { RawAnswer } from '../../api/support/requests.js';
import { until } from '../../support/engine.js';
import {
  type ClaimRequest,
  type Expected,
  expectOf,
  type ModelClaim,
  STATUSES,
  saying,
} from './claimModel.js';
import { aKey, type Caller, type ClaimSystem } from './claimSystem.js';
import { compare, compareOne, type Kept, type Known } from './knownClaims.js';

/** Commands on claims, each with the check of its result. */

export type Command = fc.AsyncCommand<Known, ClaimSystem>;

const AWAY = { code: 'workflow_engine_unavailable', status: 503 };
const isReachable = (known: Known): boolean => known.isLineWhole && known.isWorking;

/** The requests of one claim. */
interface Asked {
  claim: number;
  request: ClaimRequest;
  caller: Caller;
  isKeyed: boolean;
}

/** Faults of Temporal while requests are in progress. */
export type Disturbance = 'cut' | 'silence' | 'stall' | 'kill';

async function disturb(known: Known, system: ClaimSystem, how: Disturbance): Promise<void> {
  if (how === 'kill') {
    known.isWorking = false;
    await system.killWorker();
    return;
  }
  known.isLineWhole = false;
  system.line[how]();
}

/** Requests to several claims at once; the engine may go away in the midst. */
export class Ask implements Command {
  constructor(
    readonly asked: readonly Asked[],
    readonly disturbance: { how: Disturbance; afterMs: number } | undefined,
  ) {}

  check = (known: Readonly<Known>) => !this.disturbance || isReachable(known);

  async run(known: Known, system: ClaimSystem): Promise<void> {
    const sent = this.asked.map((one) => ({ ...one, once: one.isKeyed ? aKey() : undefined }));
    const answers = sent.map((one) =>
      system.ask(known.ids[one.claim] as string, one.request, one.once, one.caller),
    );
    const wasReachable = isReachable(known);
    if (this.disturbance) {
      await new Promise((resolve) => setTimeout(resolve, this.disturbance?.afterMs));
      await disturb(known, system, this.disturbance.how);
    }
    const given = await Promise.all(answers);
    await Promise.all(
      sent.map(async (one, at) => {
        const claim = known.claims[one.claim] as ModelClaim;
        let answer = given[at] as RawAnswer;
        const expected = expectFor(claim, one);
        if (expected.status === 200 && wasReachable && !this.disturbance)
          answer = await patiently(known, system, one, answer);
        const isMoved = settle(answer, expected, wasReachable);
        if (isMoved) {
          known.claims[one.claim] = expected.after;
          known.owed.delete(one.claim);
        }
        const isFinal = answer.status === 200 || answer.status === 409;
        if (one.once !== undefined && isFinal && one.caller === 'admin' && one.request.call !== 'discard')
          known.kept.push({ claim: one.claim, request: one.request, once: one.once, answer });
      }),
    );
    await compare(known, system);
  }

  toString = () => `ask ${JSON.stringify(this.asked)} ${JSON.stringify(this.disturbance) ?? ''}`;
}

function expectFor(claim: ModelClaim, { caller, request }: Asked): Expected {
  if (caller === 'nobody') return { status: 401, after: claim };
  if (caller === 'member') return { status: 403, after: claim };
  return expectOf(claim, request);
}

/** Retries as clients do: a 503 is retried with the same key; until then the claim is unchanged. */
async function patiently(
  known: Known,
  system: ClaimSystem,
  one: Asked & { once: string | undefined },
  first: RawAnswer,
): Promise<RawAnswer> {
  let answer = first;
  if (answer.status !== 503) return answer;
  await compareOne(known, system, one.claim);
  await until(
    'the move',
    async () => {
      answer = await system.ask(known.ids[one.claim] as string, one.request, one.once, one.caller);
      return answer.status;
    },
    (status) => status !== 503,
    180_000,
  );
  return answer;
}

/** Whether the claim was changed. */
function settle(answer: RawAnswer, expected: Expected, wasReachable: boolean): boolean {
  const said = JSON.stringify(answer.body);
  if (expected.status !== 200) {
    expect(answer.status, said).toBe(expected.status);
    if (expected.code !== undefined) expect(answer.body.code).toBe(expected.code);
    return expected.status === 204;
  }
  if (answer.status === 503) {
    expect(answer.body).toMatchObject(AWAY);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    return false;
  }
  expect(answer.status, said).toBe(200);
  expect(wasReachable).toBe(true);
  expect(answer.body).toMatchObject({
    status: expected.after.status,
    version: expected.after.history.length,
  });
  return true;
}

/** Several requests to one claim at the same moment: those that were carried out make one legal history. */
export class Race implements Command {
  constructor(
    readonly claim: number,
    readonly requests: readonly ClaimRequest[],
  ) {}

  check = (known: Readonly<Known>) => !known.claims[this.claim]?.isGone;

  async run(known: Known, system: ClaimSystem): Promise<void> {
    const id = known.ids[this.claim] as string;
    const answers = await Promise.all(this.requests.map((request) => system.ask(id, request, aKey())));
    const before = known.claims[this.claim] as ModelClaim;
    const made = answers.flatMap((answer, at) =>
      answer.status === 200
        ? [{ version: answer.body.version, request: this.requests[at] as ClaimRequest }]
        : [],
    );
    let after = before;
    for (const { request, version } of made.sort((a, b) => a.version - b.version)) {
      const expected = expectOf(after, request);
      expect(expected.status, `${JSON.stringify(request)} of ${after.status}`).toBe(200);
      expect(version).toBe(expected.after.history.length);
      after = expected.after;
    }
    answers.forEach((answer, at) => {
      if (answer.status === 200) return;
      const alone = expectOf(before, this.requests[at] as ClaimRequest);
      // A possible change was not made, because another request was first or Temporal was unreachable.
      if (alone.status === 200)
        expect([409, 503, ...(made.length > 0 ? [400] : [])]).toContain(answer.status);
      if (made.length === 0 && alone.status !== 200) expect(answer.status).toBe(alone.status);
      if (alone.status === 400 && made.length === 0) expect(answer.body.code).toBe(alone.code);
    });
    const mayBeMade = this.requests.some((request) => expectOf(before, request).status === 200);
    const wasSilent = answers.some(({ status }) => status === 503);
    expect(made.length > 0).toBe(mayBeMade && isReachable(known) && (made.length > 0 || !wasSilent));
    known.claims[this.claim] = after;
    if (after !== before) known.owed.delete(this.claim);
    await compare(known, system);
  }

  toString = () => `race of claim ${this.claim} ${JSON.stringify(this.requests)}`;
}

/** Repeats a request that was answered before. */
export class Repeat implements Command {
  constructor(
    readonly which: number,
    readonly how: 'as it was' | 'forgotten' | 'with other words',
  ) {}

  check = (known: Readonly<Known>) => known.kept.length > 0;

  async run(known: Known, system: ClaimSystem): Promise<void> {
    const { claim, request, once, answer } = known.kept[this.which % known.kept.length] as Kept;
    const id = known.ids[claim] as string;
    if (this.how === 'with other words') {
      const other: ClaimRequest = {
        call: 'patch',
        body: { status: 'escalated', external_ticket_id: 'another one' },
      };
      if (request.call === 'patch')
        expect((await system.ask(id, other, once)).body).toMatchObject({
          status: 422,
          code: 'idempotency_key_reused',
        });
    } else {
      const isForgotten = this.how === 'forgotten' && answer.status === 200;
      if (isForgotten) await system.forget(once);
      const again = await system.ask(id, request, once);
      expect(again.status).toBe(answer.status);
      if (!isForgotten) expect(again.body).toEqual(answer.body);
      else expect(withoutNotice(again.body)).toEqual(withoutNotice(answer.body));
    }
    await compare(known, system);
  }

  toString = () => `repeat ${this.which} ${this.how}`;
}

/** The next notice of a claim is checked separately. */
function withoutNotice(body: Record<string, unknown>): Record<string, unknown> {
  const { next_action: _action, next_action_at: _at, ...rest } = body;
  return rest;
}

/** The deadline of a claim passes: one notice, and no move. */
export class PassDeadline implements Command {
  constructor(readonly claim: number) {}

  check = (known: Readonly<Known>) => !known.claims[this.claim]?.isGone && !known.owed.has(this.claim);

  async run(known: Known, system: ClaimSystem): Promise<void> {
    const notice = await system.passDeadline(known.ids[this.claim] as string);
    if (notice !== undefined) known.owed.set(this.claim, notice);
    if (known.isWorking) await remind(known, system);
    await compare(known, system);
  }

  toString = () => `the deadline of claim ${this.claim} passes`;
}

/** Expects owed notices now that a worker runs. */
async function remind(known: Known, system: ClaimSystem): Promise<void> {
  for (const [claim, notice] of known.owed) {
    const id = known.ids[claim] as string;
    if (!known.claims[claim]?.isGone) {
      await system.sweepUntilReminded(id);
      const { notices } = await system.aside(id);
      const more = notices - (known.notices[claim] ?? 0);
      // A deadline that is moved back a second time may be notified or not, because it was notified before.
      if (known.reminded[claim]?.has(notice)) expect([0, 1]).toContain(more);
      else expect(more).toBe(1);
      known.reminded[claim]?.add(notice);
      known.notices[claim] = notices;
    }
    known.owed.delete(claim);
  }
}

/** Stops or restarts Temporal. */
export class Engine implements Command {
  constructor(readonly how: Disturbance | 'mend' | 'work') {}

  check = (known: Readonly<Known>) => {
    if (this.how === 'mend') return !known.isLineWhole;
    if (this.how === 'work') return !known.isWorking;
    return isReachable(known);
  };

  async run(known: Known, system: ClaimSystem): Promise<void> {
    if (this.how === 'mend') {
      system.mendLine();
      known.isLineWhole = true;
    } else if (this.how === 'work') {
      await system.startWorker();
      known.isWorking = true;
      await remind(known, system);
    } else await disturb(known, system, this.how);
    await compare(known, system);
  }

  toString = () => `engine: ${this.how}`;
}

/** Some claims are with the provider already. */
export function file(known: Known, system: ClaimSystem, claims: readonly number[]): Promise<void> {
  const request = { call: 'submit' } as const;
  const asked = claims.map((claim) => ({ claim, request, caller: 'admin' as const, isKeyed: true }));
  return new Ask(asked, undefined).run(known, system);
}

/** Everything is whole again, and every claim that may be moved is moved once more: nothing came between. */
export async function goOnWhole(known: Known, system: ClaimSystem): Promise<void> {
  if (!known.isLineWhole) await new Engine('mend').run(known, system);
  if (!known.isWorking) await new Engine('work').run(known, system);
  const asked = known.claims.flatMap((claim, at) => {
    const next = STATUSES.map((status) => saying(status)).find((body) =>
      [200].includes(expectOf(claim, { call: 'patch', body }).status),
    );
    return next === undefined
      ? []
      : [
          {
            claim: at,
            request: { call: 'patch', body: next } as const,
            caller: 'admin' as const,
            isKeyed: true,
          },
        ];
  });
  await new Ask(asked, undefined).run(known, system);
}
