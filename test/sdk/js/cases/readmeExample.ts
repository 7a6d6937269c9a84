import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../../../platform/projectRoot.js';

/** The first example of the package's README, which prints the answer, as an ES module and as CommonJS. */
export function readmeExample(): { module: string; commonJs: string } {
  const readme = readFileSync(join(PROJECT_ROOT, 'sdk/js/README.md'), 'utf8');
  const [, code = ''] = /```js\n([\s\S]*?)```/.exec(readme) ?? [];
  const module = `${code}\nconsole.log(answer.choices[0].message.content);\n`;
  const commonJs = module
    .replace("import OpenAI from 'openai';", "const OpenAI = require('openai').default;")
    .replace("import { observe } from 'trueup-sdk';", "const { observe } = require('trueup-sdk');");
  return { module, commonJs: `(async () => {\n${commonJs}})();\n` };
}

/** Answers the calls of the example with `Hi`. */
export const README_ANSWER = {
  path: '/v1/chat/completions',
  json: {
    id: 'chatcmpl-readme',
    object: 'chat.completion',
    created: 1_790_000_000,
    model: 'gpt-4o-mini-2024-07-18',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 },
  },
};
