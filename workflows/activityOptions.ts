import type { ActivityOptions } from '@temporalio/workflow';

/** Activities mark lasting failures (activities/failures.ts), which no profile retries. */
const RETRY = {
  initialInterval: '500 milliseconds',
  backoffCoefficient: 2,
  maximumInterval: '15 seconds',
} as const;

/** Time limits and retries by the kind of activity. Mostly time limits, not attempt counts, end the retries. */
export const PROFILES = {
  /** A few statements. */
  database: { startToCloseTimeout: '30 seconds', scheduleToCloseTimeout: '5 minutes', retry: RETRY },
  /**
   * A move of a claim, for which a person waits: after a few seconds the row refuses it. Retried immediately, so that a
   * short database outage does not lose the move.
   */
  moving: {
    startToCloseTimeout: '5 seconds',
    scheduleToCloseTimeout: '10 seconds',
    retry: { ...RETRY, initialInterval: '100 milliseconds', maximumInterval: '1 second' },
  },
  /**
   * One provider-day: aggregation in SQL and in memory; it heartbeats. A cancelled run does not wait for days in
   * progress: their results are never published.
   */
  matching: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '5 minutes',
    scheduleToCloseTimeout: '1 hour',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
  /** Plans the explanations of a gap run, from many days of bills. */
  planning: { startToCloseTimeout: '2 minutes', scheduleToCloseTimeout: '15 minutes', retry: RETRY },
  /**
   * The series of one account, one after the other; it heartbeats. A cancelled run does not wait for the account in
   * progress.
   */
  explaining: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '1 hour',
    scheduleToCloseTimeout: '3 hours',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
  /**
   * Claims over confirmed disputes, each with its evidence and document; it heartbeats. Finished drafts stay and the
   * next run drafts the rest, so a retry is short. The run waits for it, so it gives up after some five minutes of
   * failures.
   */
  drafting: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '1 hour',
    scheduleToCloseTimeout: '2 hours',
    heartbeatTimeout: '10 seconds',
    retry: { ...RETRY, maximumAttempts: 24 },
  },
  /**
   * One chunk of a provider's report, fetched page by page and read; it heartbeats. The activity decides when to retry
   * and when to give a provider up (usecases/billing/fetchChunk.ts); the time limit is the backstop.
   */
  provider: {
    startToCloseTimeout: '2 hours',
    scheduleToCloseTimeout: '8 hours',
    heartbeatTimeout: '20 seconds',
    retry: RETRY,
  },
  /** Batches of re-priced events; it heartbeats. A cancelled run does not wait for the batch in progress. */
  pricing: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '5 minutes',
    scheduleToCloseTimeout: '1 hour',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
  /**
   * All calls of a period in one attempt, since the state of the rules is in memory; it heartbeats. After a kill it
   * starts again. A cancelled run does not wait for it.
   */
  replaying: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '3 hours',
    scheduleToCloseTimeout: '12 hours',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
  /** Old data, removed part by part; it heartbeats. A cancelled run does not wait for the part in progress. */
  removing: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '2 hours',
    scheduleToCloseTimeout: '4 hours',
    heartbeatTimeout: '20 seconds',
    retry: RETRY,
  },
  /**
   * One pass over the due messages of a webhook endpoint, each of which takes up to 15 seconds; it heartbeats. Nothing
   * waits for attempts in progress: their process records them, or they are repeated when the lease expires.
   */
  sending: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '2 minutes',
    scheduleToCloseTimeout: '1 hour',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
  /**
   * All pages of an invoice; it heartbeats. It may wait long for a place in its task queue; an engine that does not
   * answer is given up after some minutes.
   */
  extracting: {
    cancellationType: 'TRY_CANCEL',
    startToCloseTimeout: '1 hour',
    scheduleToCloseTimeout: '12 hours',
    heartbeatTimeout: '10 seconds',
    retry: { ...RETRY, maximumAttempts: 24 },
  },
  /** Parsing the words of an invoice, or comparing its lines with the bill; it heartbeats. */
  invoicing: {
    startToCloseTimeout: '2 minutes',
    scheduleToCloseTimeout: '15 minutes',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
  /** A public price list of up to 5 MB; it heartbeats. After some attempts the next day's run tries again. */
  fetching: {
    startToCloseTimeout: '90 seconds',
    scheduleToCloseTimeout: '10 minutes',
    heartbeatTimeout: '10 seconds',
    retry: { ...RETRY, maximumAttempts: 4 },
  },
  /** A report: its figures and its document, a second or two; it heartbeats. Somebody may wait for it. */
  rendering: {
    startToCloseTimeout: '2 minutes',
    scheduleToCloseTimeout: '1 hour',
    heartbeatTimeout: '10 seconds',
    retry: { ...RETRY, maximumAttempts: 10 },
  },
  /** A file of up to 1.5 GiB, read in one transaction; it heartbeats. */
  reading: {
    startToCloseTimeout: '2 hours',
    scheduleToCloseTimeout: '6 hours',
    heartbeatTimeout: '10 seconds',
    retry: RETRY,
  },
} satisfies Record<string, ActivityOptions>;
