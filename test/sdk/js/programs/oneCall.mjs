/** The built package in a runtime: an answer and a stream, with labels by context and a spool. */
import { readdirSync } from 'node:fs';
import OpenAI from 'openai';
import { flush, observe, ready, withLabels } from 'trueup-sdk';

const { PROVIDER, SPOOL } = process.env;
const options = { team: 'growth', ...(SPOOL ? { spool: SPOOL } : {}) };
const client = observe(new OpenAI({ apiKey: 'sk-test', baseURL: PROVIDER }), options);
const messages = [{ role: 'user', content: 'Hello' }];
const model = 'gpt-4o-mini';
const isReady = await ready(10_000);
const answer = await withLabels({ session: 's-1' }, async () => {
  await new Promise((resolve) => setTimeout(resolve, 1));
  return client.chat.completions.create({ model, messages });
});
const stream = await client.chat.completions.create({
  model,
  messages,
  stream: true,
  stream_options: { include_usage: true },
});
let text = '';
for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? '';
const isOnDisk = SPOOL ? readdirSync(SPOOL).length > 0 : false;
console.log(`${isReady} ${answer.choices[0].message.content} ${text} ${isOnDisk} ${await flush(10_000)}`);
