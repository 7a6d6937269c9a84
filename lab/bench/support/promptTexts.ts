import type { Random } from './random.js';

const WORDS =
  'please summarise this customer ticket about a delayed order and suggest a friendly reply that explains the refund policy in two short paragraphs without naming any person or account the tone is calm'.split(
    ' ',
  );

/** A text that one of the patterns matches, and below one of equal length that none matches. */
const FOUND = `AKIA${'Q7ZP2LM4XK9TB3WD'}`;
const HARMLESS = 'the order of tuesday';
/** Its position in a prompt: past the middle, so that most of the prompt is searched first. */
const PLACE = 320;

/** Prompts of one length, of which a share contains a match. */
export interface PromptPlan {
  chars: number;
  /** Characters of the answer that is sent with the prompt; absent: none is. */
  answerChars?: number;
  /** Percentage of calls. */
  matchPercent: number;
}

/** A prompt of exactly `chars` characters that no pattern matches. */
export function drawPrompt(random: Random, chars: number): string {
  let text = '';
  while (text.length < chars) text += `${random.pick(WORDS)} `;
  return text.slice(0, PLACE) + HARMLESS + text.slice(PLACE + HARMLESS.length, chars);
}

/** The text for `PROMPT_PLACE` of the next prompt. */
export function drawSecret(random: Random, { matchPercent }: PromptPlan): string {
  return random.below(100) < matchPercent ? FOUND : HARMLESS;
}

export const PROMPT_PLACE = PLACE;

/** Twenty patterns like those of organizations: keys, cards, ids, confidential words. */
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
