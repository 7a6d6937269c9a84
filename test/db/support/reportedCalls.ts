import { randomUUID } from 'node:crypto';
import { listEvents } from '../../../db/events/events.js';
import type { StoredEvent } from '../../../db/events/storedEvents.js';
import { insertOrganization } from '../../../db/installation/organizations.js';
import { OrgDb } from '../../../db/orgDb.js';
import { DomainError } from '../../../domain/errors.js';
import type { CallRecord, SpanLink } from '../../../domain/events/event.js';
import { IngestWriter } from '../../../usecases/events/ingestWriter.js';
import { sweepTraces } from '../../../usecases/events/traceSweep.js';
import { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { aBatch, aCall, aUsage } from '../../support/aCall.js';
import type { TestDatabase } from '../../support/database.js';
import { untilNothingHoldsBack } from '../../support/horizon.js';
import { compareCells, compareRead, compareStored, foldAll } from './compareTotals.js';
import { DIMENSIONS, FIRST } from './drawSteps.js';

const SECOND = 1_000_000n;
export const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0');

/** A span in a separate trace that reports a call under a response id. */
export function aReport(responseId: string, second: number, overrides: Partial<CallRecord> = {}): CallRecord {
  const startMicros = FIRST + BigInt(second) * SECOND;
  return aCall({
    kind: 'otel_span',
    responseId,
    requestId: responseId,
    startMicros,
    endMicros: startMicros + 800_000n,
    usage: aUsage({ input: 2_000, output: 800 }),
    ...overrides,
  });
}

/** The place of a span in a trace, both identified by numbers. */
export function aPlace(trace: number, span: number, parent?: number): SpanLink {
  return {
    traceId: hex(trace, 32),
    spanId: hex(span, 16),
    parentSpanId: parent === undefined ? null : hex(parent, 16),
  };
}

/** An organization to which several writers, as of several processes, send reports of calls. */
export class ReportedCalls {
  readonly orgDb: OrgDb;
  readonly #test: TestDatabase;
  readonly #prices: PriceBookHolder;
  #writers: IngestWriter[] = [];

  private constructor(test: TestDatabase, prices: PriceBookHolder, orgId: string) {
    this.#test = test;
    this.#prices = prices;
    this.orgDb = new OrgDb(test.database, orgId);
    this.restart();
  }

  /** Replaces the writers, as a restart of all processes does: the new ones remember no call. */
  restart(): void {
    const observer = { queueRows: () => undefined, batchRows: () => undefined };
    this.#writers = Array.from(
      { length: 3 },
      () => new IngestWriter(this.#test.database, this.#prices, 2, observer),
    );
  }

  static async of(test: TestDatabase): Promise<ReportedCalls> {
    const orgId = randomUUID();
    await insertOrganization(test.database, { id: orgId, name: 'reported calls' });
    const prices = await PriceBookHolder.open(test.database, {
      nowMs: () => 0,
      onFailure: () => undefined,
    });
    return new ReportedCalls(test, prices, orgId);
  }

  /** Sends one request to one of the writers; retries when asked to. */
  async send(calls: CallRecord[], writer = 0): Promise<void> {
    const request = {
      orgId: this.orgDb.orgId,
      keyId: `key_${'0'.repeat(10)}`,
      defaultProjectId: null,
      batch: aBatch(calls),
    };
    const chosen = this.#writers[writer % this.#writers.length] as IngestWriter;
    for (let attempt = 0; attempt < 20; attempt += 1) {
      const outcome = await chosen.submit(request).catch((error: unknown) => {
        if (!(error instanceof DomainError) || error.code !== 'service_unavailable') throw error;
      });
      if (outcome) return;
    }
    throw new Error('twenty times told to come back');
  }

  async sweep(): Promise<void> {
    await sweepTraces(this.#test.database, this.#prices);
  }

  /** Sweeps until every sent span was visited. */
  async sweepAll(): Promise<void> {
    await untilNothingHoldsBack(this.#test.superuser);
    while ((await sweepTraces(this.#test.database, this.#prices)).more);
  }

  prices() {
    return this.#prices.of(this.orgDb.orgId);
  }

  async #list(includeSuperseded: boolean): Promise<StoredEvent[]> {
    const { events } = await listEvents(
      this.orgDb,
      { includeSuperseded },
      { limit: 1_000, offset: 0 },
      false,
    );
    return events;
  }

  /** The events that count, and those that do not. */
  async events(): Promise<{ live: StoredEvent[]; superseded: StoredEvent[] }> {
    const all = await this.#list(true);
    return {
      live: all.filter(({ supersededBy }) => supersededBy === null),
      superseded: all.filter(({ supersededBy }) => supersededBy !== null),
    };
  }

  /** Response ids whose row points at an event that does not count. */
  async misdirected(): Promise<string[]> {
    const { rows } = await this.#test.superuser.query<{ response_id: string }>(
      `select s.response_id from call_spans s where s.org_id = $1 and s.response_id is not null and not exists (
         select from events e where e.org_id = s.org_id and e.id = coalesce(s.live_event_id, s.event_id) and e.superseded_by is null)`,
      [this.orgDb.orgId],
    );
    return rows.map((row) => row.response_id);
  }

  /** Fails when a total is not the sum of the events that count, as it is read or as it is folded. */
  async compareTotals(): Promise<void> {
    const compare = async () => {
      for (const dimension of DIMENSIONS)
        await compareRead(this.#test.superuser, this.orgDb, {
          dimension,
          filter: {},
          fromMicros: undefined,
          toMicros: undefined,
        });
      await compareCells(this.#test.superuser, this.orgDb);
    };
    await compare();
    await foldAll(this.#test.superuser, this.orgDb);
    await compareStored(this.#test.superuser, this.orgDb.orgId);
    await compare();
  }
}
