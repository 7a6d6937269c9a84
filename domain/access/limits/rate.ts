/** How much of something may be done: `quota` in each `windowSeconds` on the average, `burst` of it at once. */
export interface Rate {
  quota: number;
  windowSeconds: number;
  burst: number;
}

/** Every limit of a running service. All of them hold over all of its instances, but for those by address. */
export interface LimitRules {
  /** Requests that read, of a key; exports count here too. */
  reads: Rate;
  /** Requests that change something, of a key. */
  writes: Rate;
  /** Requests that send calls, of a key. */
  ingest: Rate;
  /** Items that they carry. */
  ingestItems: Rate;
  /** Runs that are started, of an organization, of each kind. */
  runs: Rate;
  /** Bills that are uploaded, of an organization. */
  imports: Rate;
  /** Answers 401, of an address. */
  failedAuthentication: Rate;
  /** Requests without a key, of an address. */
  publicRequests: Rate;
  /** Runs of a kind that an organization has open at once. */
  openRunsMax: number;
  /** Imports that an organization has open at once. */
  openImportsMax: number;
  /** Exports that an organization has open at once. */
  openExportsMax: number;
}

/** Tokens that come back in a second. */
export function perSecond(rate: Rate): number {
  return rate.quota / rate.windowSeconds;
}

/** What must be there for `cost` to be taken: more than fits into a bucket is taken from a full one, which then owes. */
export function neededFor(rate: Rate, cost: number): number {
  return Math.min(cost, rate.burst);
}
