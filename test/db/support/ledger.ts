import { bookedMicros, monthOf, type UsageView } from '../../../domain/billing/periods.js';
import { dayOf } from '../../../domain/period.js';
import { isAsked, KEY_OF, measuresOf } from './compareTotals.js';
import type { Question } from './drawSteps.js';
import { type LiveEvent, sumBy } from './liveEvents.js';

/** A change of an organization's calls: one was added or removed. */
interface Entry {
  event: LiveEvent;
  sign: 1n | -1n;
  bookedMicros: bigint;
}

type Sums = ReturnType<typeof measuresOf>;

/**
 * The expected totals, independent of the product: from the live events after each step, the day of the step, and the
 * months closed before it.
 */
export class Ledger {
  readonly #entries: Entry[] = [];
  /** The live events at the end of each day on which something happened. */
  readonly #days = new Map<string, readonly LiveEvent[]>();
  #live: readonly LiveEvent[] = [];

  /** Takes up the live events after a step. */
  record(live: readonly LiveEvent[], clockMicros: bigint, closedUntilMicros: bigint | null): void {
    const counts = new Map<string, { event: LiveEvent; count: number }>();
    const add = (events: readonly LiveEvent[], by: number) => {
      for (const event of events) {
        const key = JSON.stringify(event, (_, value) => (typeof value === 'bigint' ? `${value}` : value));
        const known = counts.get(key) ?? { event, count: 0 };
        counts.set(key, { event, count: known.count + by });
      }
    };
    add(live, 1);
    add(this.#live, -1);
    for (const { event, count } of counts.values()) {
      const booked = bookedMicros(event.micros, clockMicros, closedUntilMicros);
      for (let i = 0; i < Math.abs(count); i += 1)
        this.#entries.push({ event, sign: count > 0 ? 1n : -1n, bookedMicros: booked });
    }
    this.#live = live;
    this.#days.set(dayOf(clockMicros), live);
  }

  /** The sums of a question by key, without the keys that sum to nothing. */
  answer(asked: Question, view: UsageView): Map<string, Sums> {
    if (view.kind === 'known') return this.#sum(this.#knownBefore(view.beforeDay).map(asEntry), asked, false);
    return this.#sum(
      view.kind === 'now' ? this.#live.map(asEntry) : this.#entries,
      asked,
      view.kind === 'books',
    );
  }

  /** Late rows that are booked in the window, by the month of the calls. */
  answerLate(asked: Question): Map<string, Sums> {
    const late = this.#entries.filter((entry) => entry.bookedMicros !== entry.event.micros);
    return this.#sum(late, { ...asked, dimension: 'model' }, true, (event) => monthOf(event.micros));
  }

  #knownBefore(day: string): readonly LiveEvent[] {
    const last = [...this.#days.keys()]
      .filter((known) => known < day)
      .sort()
      .at(-1);
    return (last === undefined ? undefined : this.#days.get(last)) ?? [];
  }

  #sum(
    entries: readonly Entry[],
    asked: Question,
    isBooked: boolean,
    keyOf: (event: LiveEvent) => string = KEY_OF[asked.dimension],
  ): Map<string, Sums> {
    const counted = entries
      .map((entry) => ({ ...entry, micros: isBooked ? entry.bookedMicros : entry.event.micros }))
      .filter(({ event, micros }) => isAsked({ ...event, micros }, asked));
    const sums = sumBy(
      counted,
      ({ event, micros }) => (asked.dimension === 'day' ? keyOf({ ...event, micros }) : keyOf(event)),
      ({ event, sign }) =>
        Object.fromEntries(
          Object.entries(measuresOf(event)).map(([name, value]) => [name, value * sign]),
        ) as Sums,
    );
    return new Map([...sums].filter(([, sum]) => Object.values(sum).some((value) => value !== 0n)));
  }
}

const asEntry = (event: LiveEvent): Entry => ({ event, sign: 1n, bookedMicros: event.micros });
