import type { BilledClass } from './billedRow.js';

/** What an OpenAI `line_item` says. The label is undocumented, so it is matched whole or not at all. */
export interface OpenaiLineItem {
  /** False: no rule knows the label. It is kept as `other` and shown. */
  recognised: boolean;
  model: string | null;
  tokenClass: BilledClass;
  serviceTier: string;
  /** Null where the label cannot say: batch and standard tokens share one line. */
  isBatch: boolean | null;
  longContext: boolean | null;
  observable: boolean;
}

/**
 * Surfaces before the bar, as seen on real organizations. `priority` is a price; runs of `evals` happen inside
 * OpenAI, where no client of ours sees a call.
 */
const SURFACES: Record<string, { serviceTier: string; observable: boolean }> = {
  priority: { serviceTier: 'priority', observable: true },
  flex: { serviceTier: 'flex', observable: true },
  evals: { serviceTier: 'standard', observable: false },
  'assistants api': { serviceTier: 'standard', observable: true },
};

/** The class words after the model, with the two spellings that public records of the API show. */
const CLASSES: Record<string, BilledClass> = {
  input: 'input',
  input_tokens: 'input',
  'cached input': 'cache_read',
  'cache writes': 'cache_write_5m',
  output: 'output',
  output_tokens: 'output',
};

/** Audio classes with a price of their own; cached audio has none in the price data, so it is not guessed. */
const AUDIO_CLASSES: Partial<Record<BilledClass, BilledClass>> = {
  input: 'input_audio',
  output: 'output_audio',
};

const MODEL_LINE =
  /^(?:([a-z][a-z ]*) \| )?([a-z0-9][a-z0-9._:-]*)(?: (audio|image|text))?, (input|input_tokens|cached input|cache writes|output|output_tokens)(, long context)?$/i;

/** Charges that no call can show: storage, sessions, tool fees without a count, speech by the minute. */
const TOOL_LINES: readonly RegExp[] = [
  /^(?:assistants api \| )?file search(?: (?:tool )?calls?| storage)?$/i,
  /^(?:assistants api \| )?code interpreter(?: sessions?)?$/i,
  /^(?:assistants api \| )?vector (?:store )?storage$/i,
  /^web search(?: preview)?(?: tool)?(?: calls?)?$/i,
  /^(?:whisper-1|tts-1(?:-hd)?), audio$/i,
  /^containers?(?: sessions?)?$/i,
];

const UNRECOGNISED: OpenaiLineItem = {
  recognised: false,
  model: null,
  tokenClass: 'other',
  serviceTier: 'standard',
  isBatch: null,
  longContext: null,
  observable: true,
};

/** Reads a label: a model's line, a known charge without a model, or `recognised: false`. */
export function parseOpenaiLineItem(label: string): OpenaiLineItem {
  const text = label.trim();
  if (TOOL_LINES.some((pattern) => pattern.test(text))) {
    return { ...UNRECOGNISED, recognised: true, isBatch: false, observable: false };
  }
  const match = MODEL_LINE.exec(text);
  if (!match) return UNRECOGNISED;
  const [, surface, model = '', modality, classWord = '', longContext] = match;
  const facts =
    surface === undefined ? { serviceTier: 'standard', observable: true } : SURFACES[surface.toLowerCase()];
  const textClass = CLASSES[classWord.toLowerCase()];
  if (!facts || !textClass) return UNRECOGNISED;
  const tokenClass = modality?.toLowerCase() === 'audio' ? AUDIO_CLASSES[textClass] : textClass;
  // Image tokens have rates that the price data lacks; pricing them as text would invent a mismatch.
  if (!tokenClass || modality?.toLowerCase() === 'image') return { ...UNRECOGNISED, model: modelId(model) };
  return {
    recognised: true,
    model: modelId(model),
    tokenClass,
    serviceTier: facts.serviceTier,
    isBatch: facts.serviceTier === 'standard' ? null : false,
    longContext: longContext !== undefined,
    observable: facts.observable,
  };
}

/** Lines of fine-tuned models say `ft-<base>`, where calls and prices say `ft:<base>`. */
function modelId(model: string): string {
  return model.startsWith('ft-') ? `ft:${model.slice(3)}` : model;
}
