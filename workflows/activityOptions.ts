import type { ActivityOptions } from '@temporalio/workflow';

/** A failure that lasts is not retried, whatever the profile: the activity marks it (activities/failures.ts). */
const RETRY = {
  initialInterval: '500 milliseconds',
  backoffCoefficient: 2,
  maximumInterval: '15 seconds',
} as const;

/** How long an effect may take and be repeated, by the kind of effect. Mostly time limits, not attempt counts, end a retry. */
export const PROFILES = {
  /** A few statements. */
  database: { startToCloseTimeout: '30 seconds', scheduleToCloseTimeout: '5 minutes', retry: RETRY },
  /**
   * A move of a claim, which somebody waits for: after a few seconds nobody does, and the row refuses it. Repeated
   * at once, so that a database that is away for a moment costs nobody his move.
   */
  moving: {
    startToCloseTimeout: '5 seconds',
    scheduleToCloseTimeout: '10 seconds',
    retry: { ...RETRY, initialInterval: '100 milliseconds', maximumInterval: '1 second' },
  },
  /**
   * One provider-day: aggregation in SQL and in memory; it heartbeats. A cancelled run does not wait for the days that
   * are under way: what they still store is never published.
   */
  matching: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '5 minutes',
    scheduleToCloseTimeout: '1 hour',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
  /** What a gap run explains, read over many days of bills. */
  planning: { startToCloseTimeout: '2 minutes', scheduleToCloseTimeout: '15 minutes', retry: RETRY },
  /** The series of one account, one after the other; it heartbeats. A cancelled run does not wait for the account under way. */
  explaining: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '1 hour',
    scheduleToCloseTimeout: '3 hours',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
  /**
   * Claims over what was confirmed, each with its evidence and its document; it heartbeats. What is made stays, and the rest
   * is left to the next run, so a repeat ends soon. The run waits for it, so it gives up after some five minutes of failures.
   */
  drafting: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '1 hour',
    scheduleToCloseTimeout: '2 hours',
    heartbeatTimeout: '10 seconds',
    retry: { ...RETRY, maximumAttempts: 24 },
  },
  /**
   * One chunk of a provider's report, fetched page by page and read; it heartbeats. The activity itself says when to repeat it and gives
   * a provider up (usecases/billing/fetchChunk.ts); the time limit is the fence behind that.
   */
  provider: {
    startToCloseTimeout: '2 hours',
    scheduleToCloseTimeout: '8 hours',
    heartbeatTimeout: '20 seconds',
    retry: RETRY,
  },
  /** Batches of events priced anew; it heartbeats. A cancelled run does not wait for the batch under way. */
  pricing: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '5 minutes',
    scheduleToCloseTimeout: '1 hour',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
  /**
   * All calls of a period in one go, since what rules remember of them is in memory; it heartbeats. Killed, it begins
   * anew. A cancelled run does not wait for it.
   */
  replaying: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '3 hours',
    scheduleToCloseTimeout: '12 hours',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
  /** What is too old, removed piece by piece; it heartbeats. A cancelled run does not wait for the piece under way. */
  removing: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '2 hours',
    scheduleToCloseTimeout: '4 hours',
    heartbeatTimeout: '20 seconds',
    retry: RETRY,
  },
  /**
   * A pass over the due messages of a webhook endpoint, each of which takes up to 15 seconds; it heartbeats. What is
   * under way is not waited for: it is written down by the process that sends it, or repeated when its lease is over.
   */
  sending: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '2 minutes',
    scheduleToCloseTimeout: '1 hour',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
  /**
   * All pages of an invoice; it heartbeats. It may wait long for a place in its task queue; an engine that does not answer
   * is given up after some minutes.
   */
  extracting: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '1 hour',
    scheduleToCloseTimeout: '12 hours',
    heartbeatTimeout: '10 seconds',
    retry: { ...RETRY, maximumAttempts: 24 },
  },
  /** The words of an invoice understood, or its lines compared with the bill; it heartbeats. */
  invoicing: {
    startToCloseTimeout: '2 minutes',
    scheduleToCloseTimeout: '15 minutes',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
  /** A file of up to 1.5 GiB, read in one transaction; it heartbeats. */
  reading: {
    startToCloseTimeout: '2 hours',
    scheduleToCloseTimeout: '6 hours',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
} satisfies Record<string, ActivityOptions>;
