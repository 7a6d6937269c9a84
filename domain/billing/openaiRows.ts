import { DomainError } from '../errors.js';
import {
  type BilledClass,
  type BilledRow,
  categoryOfLabel,
  QUANTITY_ONE,
  QUANTITY_SCALE,
} from './billedRow.js';
import {
  countOf,
  currencyCodeOf,
  emptyRow,
  type FxRate,
  findScaled,
  findText,
  isPageObject,
  keepText,
  keepTextOrNull,
  type PageBucket,
  type PageKind,
  type PageObject,
  toPicoOrNull,
} from './pageRow.js';

/** Units of token quantities; any other unit is kept unchanged. */
const TOKENS_OF_UNIT: Record<string, bigint> = { tokens: 1n, '1000_tokens': 1_000n };

/** A line whose quantity does not count tokens has no token class. */
function classByUnit(tokenClass: BilledClass, unit: string | null): BilledClass {
  return unit === null || unit in TOKENS_OF_UNIT ? tokenClass : 'other';
}

/** One result of OpenAI's costs; `amount.value` is a float or a decimal text. Error invalid_billing_file without one. */
export function openaiCostRow(
  kind: PageKind,
  bucket: PageBucket,
  result: PageObject,
  fxRate: FxRate,
): BilledRow {
  const amount = isPageObject(result.amount) ? result.amount : {};
  const original = findScaled(amount.value, QUANTITY_SCALE);
  if (original === undefined)
    throw new DomainError('invalid_billing_file', 'amount.value must be a number of dollars');
  const currency = currencyCodeOf(amount.currency, 'amount.currency');
  const label = findText(result.line_item);
  const item: OpenaiLineItem = parseOpenaiLineItem(label ?? '');
  const unit = keepTextOrNull(findText(result.quantity_unit));
  const quantity = findScaled(result.quantity, QUANTITY_SCALE);
  return {
    ...emptyRow(kind, bucket),
    account: keepTextOrNull(findText(result.organization_id)),
    chargeCategory: categoryOfLabel(label ?? '', item.recognised, original),
    lineItem: keepText(label ?? '(no line item)'),
    observable: item.observable,
    model: item.model,
    tokenClass: classByUnit(item.tokenClass, unit),
    serviceTier: item.serviceTier,
    isBatch: item.isBatch,
    longContext: item.longContext,
    project: keepTextOrNull(findText(result.project_id)),
    apiKey: keepTextOrNull(findText(result.api_key_id)),
    quantity: quantity === undefined ? null : quantity * (TOKENS_OF_UNIT[unit ?? ''] ?? 1n),
    quantityUnit: unit !== null && unit in TOKENS_OF_UNIT ? 'tokens' : unit,
    amountPico: toPicoOrNull(original, currency, fxRate),
    currency,
    originalAmount: original,
  };
}

/** OpenAI's names of tiers in usage results; `default` and `auto` have the ordinary price. */
const TIERS: Record<string, string> = {
  default: 'standard',
  auto: 'standard',
  standard: 'standard',
  scale: 'standard',
};

/** The quantity field of each usage report without token counts. */
const OTHER_QUANTITIES: Record<string, { field: string; unit: string }> = {
  images: { field: 'images', unit: 'images' },
  audio_speeches: { field: 'characters', unit: 'characters' },
  audio_transcriptions: { field: 'seconds', unit: 'duration_seconds' },
  vector_stores: { field: 'usage_bytes', unit: 'bytes' },
  code_interpreter_sessions: { field: 'num_sessions', unit: 'sessions' },
  file_search_calls: { field: 'num_requests', unit: 'calls' },
  web_search_calls: { field: 'num_requests', unit: 'calls' },
};

/** Tool calls happen inside requests that the completions report already counts. */
const TOOL_REPORTS: ReadonlySet<string> = new Set(['file_search_calls', 'web_search_calls']);

/**
 * One usage result of OpenAI: a row for each disjoint class and one for requests. Error invalid_billing_file if
 * parts exceed the input.
 */
export function openaiUsageRows(kind: PageKind, bucket: PageBucket, result: PageObject): BilledRow[] {
  const tier = findText(result.service_tier) ?? 'default';
  const base: BilledRow = {
    ...emptyRow(kind, bucket),
    account: keepTextOrNull(findText(result.organization_id)),
    lineItem: `usage ${kind.report}`,
    model: keepTextOrNull(findText(result.model)),
    serviceTier: TIERS[tier] ?? keepText(tier),
    isBatch: typeof result.batch === 'boolean' ? result.batch : null,
    project: keepTextOrNull(findText(result.project_id)),
    apiKey: keepTextOrNull(findText(result.api_key_id)),
  };
  const rows = quantitiesOf(kind.report, result).map(
    ([tokenClass, quantity, unit]): BilledRow => ({ ...base, tokenClass, quantity, quantityUnit: unit }),
  );
  const requests = countOf(result.num_model_requests, 'num_model_requests');
  if (requests > 0n && !TOOL_REPORTS.has(kind.report))
    rows.push({ ...base, tokenClass: 'requests', quantity: requests, quantityUnit: 'requests' });
  return rows;
}

function quantitiesOf(report: string, result: PageObject): [BilledClass, bigint, string][] {
  const other = OTHER_QUANTITIES[report];
  const found: [BilledClass, bigint, string][] = other
    ? [['other', countOf(result[other.field], other.field), other.unit]]
    : Object.entries(tokenClassesOf(result)).map(([tokenClass, count]) => [
        tokenClass as BilledClass,
        count,
        'tokens',
      ]);
  return found.filter(([, quantity]) => quantity > 0n);
}

function tokenClassesOf(result: PageObject): Partial<Record<BilledClass, bigint>> {
  const count = (field: string) => countOf(result[field], field);
  const cached = count('input_cached_tokens');
  const written = count('input_cache_write_tokens');
  // Cached audio has no separate class and counts as cached tokens.
  const inputAudio = freshAudioOf(result, count('input_tokens') - cached - written);
  const outputAudio = count('output_audio_tokens');
  const input = count('input_tokens') - cached - written - inputAudio;
  const output = count('output_tokens') - outputAudio;
  const uncached = findScaled(result.input_uncached_tokens, QUANTITY_SCALE);
  if (
    input < 0n ||
    output < 0n ||
    inputAudio < 0n ||
    (uncached !== undefined && uncached !== input + inputAudio)
  ) {
    const total = count('input_tokens') / QUANTITY_ONE;
    throw new DomainError(
      'invalid_billing_file',
      `the token counts do not add up: input_tokens ${total} is not the sum of its parts`,
    );
  }
  return {
    input,
    cache_read: cached,
    cache_write_5m: written,
    output,
    input_audio: inputAudio,
    output_audio: outputAudio,
  };
}

/** Uncached audio input. Older pages include cached audio, which shows in the other parts of the input. */
function freshAudioOf(result: PageObject, uncached: bigint): bigint {
  const count = (field: string) => countOf(result[field], field);
  const audio = count('input_audio_tokens');
  const withoutCached = audio - count('input_cached_audio_tokens');
  if (audio > uncached) return withoutCached;
  if (!('input_text_tokens' in result)) return audio;
  const rest = uncached - count('input_text_tokens') - count('input_image_tokens');
  return rest === withoutCached ? withoutCached : audio;
}

/** A parsed OpenAI `line_item`. The label is undocumented, so it matches as a whole or not at all. */
export interface OpenaiLineItem {
  /** false: no rule recognises the label. It is kept and shown as `other`. */
  recognised: boolean;
  model: string | null;
  tokenClass: BilledClass;
  serviceTier: string;
  /** null: the label does not separate batch; batch and standard tokens share one line. */
  isBatch: boolean | null;
  longContext: boolean | null;
  observable: boolean;
}

/**
 * Surfaces before the bar, as observed. `priority` is a tier with its own price; `evals` run inside OpenAI, where
 * clients cannot see them.
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

/** Audio classes with a price of their own. The price data has none for cached audio, so it is not guessed. */
const AUDIO_CLASSES: Partial<Record<BilledClass, BilledClass>> = {
  input: 'input_audio',
  output: 'output_audio',
};

const MODEL_LINE =
  /^(?:([a-z][a-z ]*) \| )?([a-z0-9][a-z0-9._:-]*)(?: (audio|image|text))?, (input|input_tokens|cached input|cache writes|output|output_tokens)(, long context)?$/i;

/** Charges that no call shows: storage, sessions, tool fees without a count, speech by the minute. */
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

/** Parses a label: a model's line, a known charge without a model, or `recognised: false`. */
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
  // The price data lacks rates of image tokens; pricing them as text would invent a mismatch.
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

/** Lines of fine-tuned models contain `ft-<base>`, calls and prices `ft:<base>`. */
function modelId(model: string): string {
  return model.startsWith('ft-') ? `ft:${model.slice(3)}` : model;
}
