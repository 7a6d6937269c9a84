import type { BilledClass } from '../billing/billedRow.js';
import { parseAzureMeter } from '../billing/grammars/azureMeter.js';
import { parseBedrockCharge } from '../billing/grammars/bedrockUsageType.js';
import { googleModel, parseGoogleSku } from '../billing/grammars/googleSku.js';
import { parseOpenaiLineItem } from '../billing/openaiRows.js';
import type { Provider } from '../providers.js';
import type { LineKind, Scaled } from './invoiceReading.js';

export interface LineClass {
  kind: LineKind;
  model: string | null;
  tokenClass: BilledClass | null;
}

/** Classifies a line by its words and its sign. */
export function classifyLine(
  description: string,
  { amount, provider, hasQuantity }: { amount: Scaled; provider: Provider; hasQuantity: boolean },
): LineClass {
  const model = modelOf(description, provider);
  // A model's name may contain words of a class: `grok-4-fast-reasoning`.
  const tokenClass = model?.tokenClass ?? classOf(description.replace(MODEL_ID, ''));
  const kind = kindOf(description, amount, model !== undefined || tokenClass !== null, hasQuantity);
  const isUsage = kind === 'usage' || kind === 'credit' || kind === 'discount';
  return isUsage
    ? { kind, model: model?.model ?? null, tokenClass }
    : { kind, model: null, tokenClass: null };
}

const TAX = /^(?:estimated |us |eu )?(?:sales tax|vat|gst|hst|pst|qst|tax(?:es)?|mwst|ust|tva|iva)\b/i;
const PRORATION = /\b(?:remaining time|unused time|prorat\w+|pro rata|anteilig)\b/i;
const DISCOUNT =
  /\b(?:discounts?|coupon|rebate|savings|rabatt|nachlass|remise|promo(?:tion|tional)?(?! credits?))\b/i;
const PURCHASE =
  /\b(?:credit purchase|purchase of credits?|(?:api )?(?:usage )?credits? (?:purchase|top-?up|pack(?:age)?|grant purchase)|(?:api )?usage credits?|prepaid (?:credits?|balance|usage)|prepayment|top-?up|auto-?(?:recharge|reload|top-?up)|added? funds|account funding|guthaben(?:aufladung)?|api credits?|credits? \(prepaid\))\b/i;
const CREDIT = /\b(?:credits?|refund(?:ed)?|gutschrift|avoir|goodwill|adjustment|reimbursement|sla)\b/i;
const SUBSCRIPTION =
  /\b(?:seats?|subscription|subscr\.|licen[cs]es?|per user|plan|membership|monthly fee|annual fee|platform fee|base fee|support|enterprise agreement|chatgpt (?:team|business|enterprise|plus|pro)|claude (?:team|pro|max|enterprise)|le chat|supergrok|commit(?:ment|ted)|reserved|provisioned)\b/i;
const USAGE =
  /\b(?:usage|tokens?|requests?|api|inference|calls?|input|output|bedrock|openai service|azure openai|cognitive services|foundry|vertex|gemini|claude|gpt|grok|mistral|codestral|command|embed\w*|completions?|search|images?|batch|fine-?tun\w+|training|audio|minutes)\b/i;

function kindOf(text: string, amount: Scaled, namesUsage: boolean, hasQuantity: boolean): LineKind {
  if (PRORATION.test(text)) return 'proration';
  if (TAX.test(text) && !hasQuantity) return 'tax';
  if (amount < 0n) return DISCOUNT.test(text) ? 'discount' : 'credit';
  if (DISCOUNT.test(text) && !namesUsage) return 'discount';
  if (PURCHASE.test(text)) return 'prepaid_purchase';
  if (namesUsage) return 'usage';
  if (SUBSCRIPTION.test(text)) return 'subscription';
  // A credit with a positive amount is a purchase; a granted credit is negative.
  if (/\bcredits\b/i.test(text) && hasQuantity) return 'prepaid_purchase';
  if (CREDIT.test(text)) return 'credit';
  return USAGE.test(text) ? 'usage' : 'other';
}

interface NamedModel {
  model: string;
  tokenClass: BilledClass | null;
}

/** The model of a description, by the provider's grammar of bills or by the words of its family. */
function modelOf(description: string, provider: Provider): NamedModel | undefined {
  const grammar = provider in GRAMMARS ? GRAMMARS[provider as keyof typeof GRAMMARS] : undefined;
  for (const text of wordings(description)) {
    const label = grammar?.(text);
    if (label?.recognised && label.model !== null)
      return { model: label.model, tokenClass: label.tokenClass };
  }
  const id = idIn(description) ?? claudeIn(description) ?? geminiIn(description);
  return id === undefined ? undefined : { model: id, tokenClass: null };
}

const GRAMMARS = {
  openai: parseOpenaiLineItem,
  azure_openai: (text: string) =>
    parseAzureMeter(text.replace(/^azure openai(?: service)?\s*[-–:|]?\s*/i, '')),
  aws_bedrock: (text: string) => {
    const [, name = '', type = ''] =
      /^(?:amazon bedrock\s*[-–:|]\s*)?(.+?)\s*[-–,:|(]\s*((?:prompt |cache ?|cached )?[\w ]*tokens?[\w ]*)\)?$/i.exec(
        text,
      ) ?? [];
    return parseBedrockCharge(text, name, { model: name === '' ? undefined : name, inferenceType: type });
  },
  google: (text: string) =>
    parseGoogleSku(text.replace(/^(?:vertex ai|gemini api|generative language api)\s*[-–:|]\s*/i, '')),
};

/** A description as printed, and without the service, period or quantity around the label. */
function* wordings(description: string): Generator<string> {
  const text = description.replace(/\s+/g, ' ').trim();
  yield text;
  const bare = text
    .replace(/\s*\((?![^)]*(?:token|long|batch|context))[^)]*\)/gi, '')
    .replace(
      /^(?:api )?usage(?: for| of)?\s*[-–:|]\s*|^(?:openai |anthropic )?api(?: usage)?\s*[-–:|]\s*/i,
      '',
    )
    .trim();
  yield bare;
  // `gpt-5.2 - Input tokens` → `gpt-5.2, input`
  yield bare
    .replace(/\s*[-–—:|·(]\s*(?=(?:cached|input|output|cache|audio|prompt|completion)\b)/i, ', ')
    .replace(/ tokens?\b.*$/i, '');
  for (const part of bare.split(/\s+[-–—|·:]\s+/)) yield part;
}

/** Model ids with dashes: a family, then parts with a digit or known words. */
const MODEL_ID =
  /\b((?:gpt|chatgpt|o[1-9]|text-embedding|codex|computer-use|claude|gemini|gemma|grok|mistral|ministral|magistral|codestral|devstral|pixtral|voxtral|open-mi[sx]tral|labs|command|c4ai-aya|embed|rerank|glm|deepseek|nova|titan)(?:-[a-z0-9][a-z0-9.]*)+|o[1-9](?:-[a-z0-9.]+)*|command|glm-[\w.]+)\b(?![-.]\w)/i;

function idIn(description: string): string | undefined {
  const id = MODEL_ID.exec(description)?.[1]?.toLowerCase();
  if (id !== undefined) return id;
  const [, maker, rest] =
    /\b(grok|mistral|ministral|magistral|codestral|devstral|pixtral|command|gpt|embed)[ -]((?:(?:[a-z]?\d[\w.]*|large|medium|small|tiny|nemo|saba|embed|mini|nano|pro|fast|code|vision|latest|a|r|r\+|r7b|plus|english|multilingual|v\d[\d.]*|sol|terra|luna|astra|codex|turbo|audio)(?=[\s,:()|–-]|$)[ -]?)+)/i.exec(
      description,
    ) ?? [];
  if (maker === undefined || rest === undefined) return undefined;
  return `${maker} ${rest}`
    .trim()
    .toLowerCase()
    .replace(/\+/g, '-plus')
    .replace(/[\s-]+/g, '-')
    .replace(/-$/, '');
}

/** `Claude Sonnet 4.5`, `Claude 3.5 Haiku`; the grammar of Google's bills knows both orders. */
function claudeIn(description: string): string | undefined {
  const [, words] =
    /\bclaude ((?:(?:opus|sonnet|haiku|fable|mythos|instant|v2|\d(?:[.-]\d)?)(?=[\s,:()|–-]|$)\s?){2,3})/i.exec(
      description,
    ) ?? [];
  return words === undefined
    ? undefined
    : googleModel([
        'claude',
        ...words
          .trim()
          .toLowerCase()
          .replace(/(\d)-(\d)/, '$1.$2')
          .split(' '),
      ]);
}

function geminiIn(description: string): string | undefined {
  const [, words] =
    /\bgemini ((?:(?:\d(?:\.\d)?|flash|lite|pro|ultra|nano|preview|embedding)(?=[\s,:()|–-]|$)[\s-]?)+)/i.exec(
      description,
    ) ?? [];
  return words === undefined
    ? undefined
    : googleModel([
        'gemini',
        ...words
          .trim()
          .toLowerCase()
          .split(/[\s-]+/),
      ]);
}

/** Words of each class of tokens, the narrower first. */
const CLASSES: readonly [RegExp, BilledClass][] = [
  [
    /\bcach\w*[\s-]*(?:writes?|creation)\b.*\b(?:1 ?h(?:our|r)?|60 ?min)|\b1 ?h(?:our|r)?\b.*\bcach\w*[\s-]*(?:writes?|creation)\b/i,
    'cache_write_1h',
  ],
  [/\bcach\w*[\s-]*(?:writes?|creation)\b/i, 'cache_write_5m'],
  [/\b(?:cache[ds]?|caching)\b(?!.*\boutput\b)/i, 'cache_read'],
  [/\baudio\b.*\b(?:output|completion)\b|\b(?:output|completion)\b.*\baudio\b/i, 'output_audio'],
  [/\baudio\b.*\b(?:input|prompt)\b|\b(?:input|prompt)\b.*\baudio\b/i, 'input_audio'],
  [/\b(?:output|completion|generated|reasoning)\b/i, 'output'],
  [/\b(?:input|prompt)\b/i, 'input'],
];

function classOf(description: string): BilledClass | null {
  const found = CLASSES.find(([pattern]) => pattern.test(description))?.[1];
  return found ?? (/\brequests?\b/i.test(description) ? 'requests' : null);
}
