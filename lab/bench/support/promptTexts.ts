import type { Random } from './random.js';

const WORDS =
  'please summarise this customer ticket about a delayed order and suggest a friendly reply that explains the refund policy in two short paragraphs without naming any person or account the tone is calm'.split(
    ' ',
  );

/** What one of the patterns finds, and a text of its length that none finds. */
const FOUND = `AKIA${'Q7ZP2LM4XK9TB3WD'}`;
const HARMLESS = 'the order of tuesday';
/** Where it stands in a prompt: past the middle, so that most of the prompt is searched before. */
const PLACE = 320;

/** Prompts of one length, of which some hold what a pattern finds. */
export interface PromptPlan {
  chars: number;
  /** Share of calls, in percent. */
  matchPercent: number;
}

/** A prompt that no pattern finds, of exactly so many characters. */
export function drawPrompt(random: Random, chars: number): string {
  let text = '';
  while (text.length < chars) text += `${random.pick(WORDS)} `;
  return text.slice(0, PLACE) + HARMLESS + text.slice(PLACE + HARMLESS.length, chars);
}

/** What stands at `PROMPT_PLACE` of the next prompt. */
export function drawSecret(random: Random, { matchPercent }: PromptPlan): string {
  return random.below(100) < matchPercent ? FOUND : HARMLESS;
}

export const PROMPT_PLACE = PLACE;

/** Twenty patterns as organizations write them: keys, cards, ids, words that should not leave the house. */
export const BENCH_PATTERNS: readonly string[] = [
  'AKIA[0-9A-Z]{16}',
  '(?i)aws_secret_access_key\\s*[:=]',
  'ghp_[0-9A-Za-z]{36}',
  'xox[baprs]-[0-9A-Za-z-]{10,48}',
  'sk_live_[0-9a-zA-Z]{24}',
  '-----BEGIN (?:RSA |EC |OPENSSH )?PRIVATE KEY-----',
  '\\b\\d{3}-\\d{2}-\\d{4}\\b',
  '\\b4\\d{3}[ -]?\\d{4}[ -]?\\d{4}[ -]?\\d{4}\\b',
  '\\b5[1-5]\\d{2}[ -]?\\d{4}[ -]?\\d{4}[ -]?\\d{4}\\b',
  '\\b[A-Z]{2}\\d{2}(?: ?\\w{4}){3,7}\\b',
  '(?i)\\bpassword\\s*(?:is|[:=])',
  '(?i)\\bconfidential\\b',
  '(?i)\\binternal use only\\b',
  '(?i)ignore (?:all )?previous instructions',
  '(?i)\\bproject (?:atlas|borealis|condor)\\b',
  '[\\w.+-]+@corp\\.example\\b',
  'eyJ[\\w-]{10,}\\.eyJ[\\w-]{10,}',
  '(?i)\\bsocial security\\b',
  '(?i)\\b(?:salary|bonus) of \\$?\\d',
  '(?i)jdbc:[a-z]+://[^\\s]+:[^\\s]+@',
];
