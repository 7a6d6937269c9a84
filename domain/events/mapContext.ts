import type { Provider } from '../providers.js';
import type { TimeWindow } from './itemFault.js';

/** What mapping needs from outside: the clock, the oldest day that is taken, and the price book's guess of a provider. */
export interface MapContext extends TimeWindow {
  /** Now, microseconds since 1970-01-01Z. */
  nowMicros: bigint;
  /** Earlier calls are refused: 2020-01-01, or the limit of EVENT_RETENTION_DAYS. */
  oldestMicros: bigint;
  /** The one provider that sells this model at first hand; undefined when there is none or more than one. */
  inferProvider(model: string): Provider | undefined;
}
