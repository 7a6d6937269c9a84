/** A case of trueup-sdk: calls of an official Python client, the answers of its provider and the expected events. */
import type { ScriptedAnswer } from '../../fakes/scriptedApi.js';
import type { PricedTokens } from '../costCalculator.js';

/** An event that Trueup must have; what is absent is not compared. */
export interface SdkEvent {
  provider: string;
  model: string;
  status: 'ok' | 'error' | 'cancelled';
  stop: string;
  feature: string | null;
  /** By which the cost is computed. Absent: the event has no cost. */
  tokens?: Partial<PricedTokens>;
  /** The model whose price counts, where it is not `model`. */
  pricedAs?: string;
  batch?: string;
  /** Of media, whose cost the table of prices leaves open. */
  outputTokens?: number;
  session?: string;
  user?: string;
}

export interface SdkCase {
  /** The function of `trueup_sdk_cases.py`, and the recording. */
  name: string;
  /** Called for each run, so that ids begin anew. */
  answers(createdAt: number, origin: () => string): readonly ScriptedAnswer[];
  events: readonly SdkEvent[];
  /** The client has no async form. */
  isSyncOnly?: true;
}

export const isStream = (body: string) => /"stream":\s*true/.test(body);
export const isWhole = (body: string) => !isStream(body);
export const asksFor = (text: string) => (body: string) => body.includes(text);

/** An answer that is made anew for each request, with a number for its id: two reports of one id are one call. */
export function numbered(
  path: string,
  isFor: (body: string) => boolean,
  make: (index: number) => Pick<ScriptedAnswer, 'json' | 'events' | 'frames' | 'text'>,
  more: Partial<ScriptedAnswer> = {},
): ScriptedAnswer {
  let index = 0;
  let made: ReturnType<typeof make> = {};
  return {
    ...more,
    path,
    isFor(body) {
      if (!isFor(body)) return false;
      index += 1;
      made = make(index);
      return true;
    },
    get json() {
      return made.json;
    },
    get events() {
      return made.events as ScriptedAnswer['events'];
    },
    get frames() {
      return made.frames as ScriptedAnswer['frames'];
    },
    get text() {
      return made.text as string;
    },
  } as ScriptedAnswer;
}
