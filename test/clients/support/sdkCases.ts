/** Every case of trueup-sdk with the official Python clients. */
import type { SdkCase } from './sdkCase.js';
import { ANTHROPIC_CASES } from './sdkCasesOfAnthropic.js';
import { OPENAI_CASES } from './sdkCasesOfOpenAi.js';
import { OTHER_CASES } from './sdkCasesOfOthers.js';

export const SDK_CASES: readonly SdkCase[] = [...OPENAI_CASES, ...ANTHROPIC_CASES, ...OTHER_CASES];
