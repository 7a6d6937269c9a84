import { Anthropic } from '@anthropic-ai/sdk';
import { AzureOpenAI, OpenAI } from 'openai';
import { BedrockOpenAI } from 'openai/bedrock';
import { describe, expect, it } from 'vitest';
import { EventService } from '../../fakes/eventService.js';

/** As Anthropic's packages for other hosts name their clients, which extend its own. */
class AnthropicBedrock extends Anthropic {}
class AnthropicVertex extends Anthropic {}
/** A company's own client of such a host. */
class CompanyClient extends AnthropicBedrock {}

const MODEL = 'large';
const messages = [{ role: 'user' as const, content: 'Hello' }];
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: MODEL,
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 100, output_tokens: 20 },
};
const response = {
  id: 'resp_1',
  object: 'response',
  model: MODEL,
  status: 'completed',
  output: [],
  usage: { input_tokens: 100, output_tokens: 20, total_tokens: 120 },
};

/** A gateway of the company, whose address names no provider. */
const GATEWAY = 'https://llm.example.com/v1';
const answering = (json: object) => ({
  apiKey: 'key',
  fetch: async () => new Response(JSON.stringify(json), { headers: { 'content-type': 'application/json' } }),
});
const askAnthropic = (client: Anthropic) =>
  client.messages.create({ model: MODEL, max_tokens: 64, messages });
const askOpenAi = (client: OpenAI) => client.responses.create({ model: MODEL, input: 'Hello' });

type Ask = (
  observe: <Client extends object>(client: Client) => Client,
  baseURL: string,
) => PromiseLike<unknown>;
const CLIENTS: [string, string, Ask][] = [
  [
    'Anthropic',
    'anthropic',
    (observe, baseURL) => askAnthropic(observe(new Anthropic({ ...answering(message), baseURL }))),
  ],
  [
    'AnthropicBedrock',
    'aws_bedrock',
    (observe, baseURL) => askAnthropic(observe(new AnthropicBedrock({ ...answering(message), baseURL }))),
  ],
  [
    'AnthropicVertex',
    'google',
    (observe, baseURL) => askAnthropic(observe(new AnthropicVertex({ ...answering(message), baseURL }))),
  ],
  [
    'a client that extends AnthropicBedrock',
    'aws_bedrock',
    (observe, baseURL) => askAnthropic(observe(new CompanyClient({ ...answering(message), baseURL }))),
  ],
  [
    'a copy of AnthropicVertex',
    'google',
    (observe, baseURL) =>
      askAnthropic(
        observe(new AnthropicVertex({ ...answering(message), baseURL })).withOptions({ timeout: 1_000 }),
      ),
  ],
  [
    'OpenAI',
    'openai',
    (observe, baseURL) => askOpenAi(observe(new OpenAI({ ...answering(response), baseURL }))),
  ],
  [
    'BedrockOpenAI',
    'aws_bedrock',
    (observe, baseURL) => askOpenAi(observe(new BedrockOpenAI({ ...answering(response), baseURL }))),
  ],
  [
    'AzureOpenAI',
    'azure_openai',
    (observe, baseURL) =>
      askOpenAi(
        observe(new AzureOpenAI({ ...answering(response), apiVersion: '2025-04-01-preview', baseURL })),
      ),
  ],
];

async function providerOf(ask: Ask, baseURL: string): Promise<unknown> {
  const service = new EventService();
  const trueup = service.connect();
  await ask((client) => trueup.observe(client), baseURL);
  expect(await trueup.close()).toBe(true);
  expect(service.events).toHaveLength(1);
  return service.events[0]?.provider;
}

describe('the provider of a call in the JavaScript package', () => {
  it.each(CLIENTS)('is by the class of %s, behind a gateway, %s', async (_, provider, ask) => {
    expect(await providerOf(ask, GATEWAY)).toBe(provider);
  });

  it('is by the address where it names one, whatever the class', async () => {
    const [, , ask] = CLIENTS[1] as (typeof CLIENTS)[number];
    expect(await providerOf(ask, 'https://api.anthropic.com')).toBe('anthropic');
  });
});
