/**
 * Makes calls with an observed client whose provider answers at once. `END` is `return`, `exit`, `flush` (then exit) or
 * `stay`, until SIGUSR2 calls `process.exit()`. Prints a line when the calls are made.
 */
import { OpenAI } from 'openai';
import { Trueup } from '../../../../sdk/js/src/node.js';

const { SERVICE_URL = '', SPOOL, CALLS = '0', END, FLUSH_MS, EXIT_MS } = process.env;
const trueup = new Trueup({
  url: SERVICE_URL,
  apiKey: 'tru_test',
  // Only the end sends, unless the test names an interval.
  flushIntervalMs: Number(FLUSH_MS ?? 60_000),
  ...(EXIT_MS === undefined ? {} : { exitTimeoutMs: Number(EXIT_MS) }),
  ...(SPOOL === undefined ? {} : { spool: SPOOL }),
});
let answered = 0;
const client = trueup.observe(
  new OpenAI({
    apiKey: 'sk-test',
    fetch: async () => {
      answered += 1;
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }];
      const id = `chatcmpl-${process.pid}-${answered}`;
      return Response.json({ id, object: 'chat.completion', created: 1, model: 'gpt-4o', choices, usage });
    },
  }),
);
for (let index = 0; index < Number(CALLS); index += 1)
  await client.chat.completions.create({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] });
console.log(`made ${CALLS}`);
if (END === 'flush') console.log(`flushed ${await trueup.flush(5_000)}`);
if (END === 'exit' || END === 'flush') process.exit(0);
if (END === 'stay') {
  process.on('SIGUSR2', () => process.exit(0));
  setInterval(() => undefined, 1_000);
}
