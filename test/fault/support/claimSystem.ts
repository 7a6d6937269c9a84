import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { expect, inject } from 'vitest';
import { TemporalOrchestrator } from '../../../adapters/orchestrator.js';
import type { RawAnswer } from '../../api/support/requests.js';
import { send } from '../../api/support/requests.js';
import { CLAIMS, type ClaimsPlace, startClaimsPlace, uuidOf } from '../../support/claimsPlace.js';
import { until } from '../../support/engine.js';
import { TEST_NAMESPACE } from '../../support/temporal.js';
import { killHard, spawnWorker } from '../../support/workerSpawn.js';
import type { ClaimRequest } from './claimModel.js';
import { type EngineLine, startEngineLine } from './engineLine.js';

/** Longer than the API leaves an engine alone that was silent. */
const PAUSE_MS = 6_000;

/** The caller: an admin, a key without the permission, or no key. */
export type Caller = 'admin' | 'member' | 'nobody';

/** The product as the tests disturb it: the API here, its line to the engine, and a worker that can be killed. */
export class ClaimSystem {
  readonly place: ClaimsPlace;
  readonly line: EngineLine;
  readonly #orchestrator: TemporalOrchestrator;
  readonly #bundlePath: string;
  readonly #memberKey: string;
  readonly #clock: { aheadMs: number };
  #worker: ChildProcess | undefined;

  private constructor(parts: {
    place: ClaimsPlace;
    line: EngineLine;
    orchestrator: TemporalOrchestrator;
    clock: { aheadMs: number };
    bundlePath: string;
    memberKey: string;
  }) {
    this.place = parts.place;
    this.line = parts.line;
    this.#orchestrator = parts.orchestrator;
    this.#clock = parts.clock;
    this.#bundlePath = parts.bundlePath;
    this.#memberKey = parts.memberKey;
  }

  static async start(bundlePath: string): Promise<ClaimSystem> {
    const line = await startEngineLine(inject('temporalAddress'));
    const clock = { aheadMs: 0 };
    let orchestrator: TemporalOrchestrator | undefined;
    const place = await startClaimsPlace({
      engine: { sweep: { queuedSeconds: 0, silentSeconds: 0 } },
      moveClaim: (input, command) => {
        if (!orchestrator) throw new Error('it is there before anybody asks');
        return orchestrator.moveClaim(input, command);
      },
    });
    orchestrator = new TemporalOrchestrator({
      address: line.address,
      namespace: TEST_NAMESPACE,
      taskQueue: place.engine.taskQueue,
      nowMs: () => performance.now() + clock.aheadMs,
    });
    const memberKey = await place.api.addKey(place.api.orgId, 'member');
    return new ClaimSystem({ place, line, orchestrator, clock, bundlePath, memberKey });
  }

  async startWorker(): Promise<void> {
    this.#worker ??= await spawnWorker({
      databaseUrl: this.place.api.database.url,
      address: inject('temporalAddress'),
      namespace: TEST_NAMESPACE,
      taskQueue: this.place.engine.taskQueue,
      bundlePath: this.#bundlePath,
    });
  }

  async killWorker(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    if (worker) await killHard(worker);
  }

  mendLine(): void {
    this.line.mend();
    this.#clock.aheadMs += PAUSE_MS;
  }

  ask(
    id: string,
    request: ClaimRequest,
    once: string | undefined,
    caller: Caller = 'admin',
  ): Promise<RawAnswer> {
    const keys = { admin: undefined, member: this.#memberKey, nobody: null };
    const key = keys[caller];
    const who = key === undefined ? {} : { key };
    if (request.call === 'discard')
      return send(this.place.api, { method: 'DELETE', path: `${CLAIMS}/${id}`, ...who });
    const options = { ...who, ...(once === undefined ? {} : { once }) };
    return request.call === 'submit'
      ? this.place.submit(id, options)
      : this.place.patch(id, request.body, options);
  }

  /** A claim as GET shows it; undefined where there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: an answer that the API's own schemas have checked
  async shown(id: string): Promise<any> {
    const { status, body } = await this.place.api.get(`${CLAIMS}/${id}`);
    expect([200, 404]).toContain(status);
    return status === 200 ? body : undefined;
  }

  /** Data that GET does not show: its disputes, the log of its moves, its notices. */
  async aside(id: string): Promise<{ disputes: unknown[]; logged: number; notices: number }> {
    const { orgId, database } = this.place.api;
    const { rows } = await database.superuser.query(
      `select (select coalesce(jsonb_agg(jsonb_build_object('status', status, 'resolution', resolution)), '[]') from disputes
           where org_id = $1 and claim_id = $2::uuid) as disputes,
         (select count(*)::int from audit_log where org_id = $1 and subject_id = $3
           and action in ('claim.submitted', 'claim.status_changed')) as logged,
         (select count(*)::int from alerts where org_id = $1 and notice = 'claim_due' and subject_id = $3) as notices`,
      [orgId, uuidOf(id), id],
    );
    return rows[0];
  }

  /** Simulates an answer that was lost before it was stored for repeats. */
  async forget(once: string): Promise<void> {
    await this.place.api.database.superuser.query(
      'delete from idempotency_keys where org_id = $1 and idempotency_key = $2',
      [this.place.api.orgId, once],
    );
  }

  /** Has the next notice of a claim be due; its name, or undefined where none is next. */
  async passDeadline(id: string): Promise<string | undefined> {
    const { rows } = await this.place.api.database.superuser.query(
      `update claims set next_action_at = now() - interval '1 second' where id = $1 and next_action_at is not null
       returning version || ' ' || next_action as notice`,
      [uuidOf(id)],
    );
    return rows[0]?.notice;
  }

  /** Waits until the due notice was sent and the next one is set. */
  async sweepUntilReminded(id: string): Promise<void> {
    await until(
      'the notice',
      async () => {
        await this.place.engine.sweeper.sweep();
        const { rows } = await this.place.api.database.superuser.query(
          'select next_action_at > now() as ahead from claims where id = $1',
          [uuidOf(id)],
        );
        return rows[0]?.ahead;
      },
      (ahead) => ahead !== false,
      180_000,
    );
  }

  aClaim(): Promise<string> {
    return this.place.aClaim();
  }

  async close(): Promise<void> {
    await this.killWorker();
    await this.#orchestrator.close();
    await this.place.close();
    await this.line.close();
  }
}

export const aKey = (): string => randomUUID();
