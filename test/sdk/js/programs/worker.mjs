/** The built package in a Cloudflare Worker: the client outlives the requests, which run at once. */
import OpenAI from 'openai';
import { flush, observe, withLabels } from 'trueup-sdk';

let client;

export default {
  async fetch(request, environment, context) {
    const { PROVIDER, TRUEUP_URL, TRUEUP_KEY } = environment;
    client ??= observe(new OpenAI({ apiKey: 'sk-test', baseURL: PROVIDER }), {
      url: TRUEUP_URL,
      apiKey: TRUEUP_KEY,
      team: 'growth',
    });
    const messages = [{ role: 'user', content: 'Hello' }];
    const model = 'gpt-4o-mini';
    const session = new URL(request.url).pathname.slice(1);
    const answer = await withLabels({ session }, () => client.chat.completions.create({ model, messages }));
    const stream = await client.chat.completions.create({
      model,
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? '';
    context.waitUntil(flush());
    return new Response(`${answer.choices[0].message.content} ${text}`);
  },
};
