/** Faults of a provider, switched on and off while it runs. */

export type FaultKind =
  /** Answers this status with the provider's error body; a 404 of a report has been an outage before. */
  | { kind: 'outage'; status: number; retryAfter?: string }
  /** Takes the request and answers nothing. */
  | { kind: 'hang' }
  /** 429 with these headers; `retryAfter` in seconds or as an HTTP date, as given. */
  | { kind: 'rate_limit'; retryAfter?: string; headers?: Record<string, string> }
  /** The key lacks the permission. */
  | { kind: 'denied' }
  /** The connection breaks in the middle of the body. */
  | { kind: 'cut_body' }
  /** 200 with this body. */
  | { kind: 'wrong_shape'; body: string }
  /** 200 with a body of this many bytes. */
  | { kind: 'large_body'; bytes: number }
  | { kind: 'redirect'; location: string }
  /** The right answer, with further headers. */
  | { kind: 'headers'; headers: Record<string, string> };

export type Fault = FaultKind & {
  /** Affects only requests of this report. */
  report?: string;
  /** Number of successful requests before the fault. */
  after?: number;
  /** Number of affected requests; absent: until it is cleared. */
  requests?: number;
};

interface Injected {
  fault: Fault;
  seen: number;
}

/** The faults of one provider, the earliest injected first. */
export class FaultSwitch {
  #injected: Injected[] = [];

  /** Returns the function that removes this fault. */
  inject(fault: Fault): () => void {
    const entry = { fault, seen: 0 };
    this.#injected.push(entry);
    return () => {
      this.#injected = this.#injected.filter((other) => other !== entry);
    };
  }

  clear(): void {
    this.#injected = [];
  }

  /** The fault that befalls a request of `report` now; counts the request. */
  next(report: string | null): Fault | undefined {
    let found: Fault | undefined;
    for (const entry of this.#injected) {
      const { fault } = entry;
      if (fault.report !== undefined && fault.report !== report) continue;
      const after = fault.after ?? 0;
      const isDue = entry.seen >= after && entry.seen < after + (fault.requests ?? Number.POSITIVE_INFINITY);
      if (isDue && found) continue;
      entry.seen += 1;
      if (isDue) found = fault;
    }
    return found;
  }
}
