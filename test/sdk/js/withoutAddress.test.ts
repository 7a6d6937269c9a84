import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { observe, Trueup } from '../../../sdk/js/src/node.js';
import { EventService } from '../../fakes/eventService.js';
import { type ScriptedApi, startScriptedApi } from '../../fakes/scriptedApi.js';
import { type OfficialClients, repositoryClients } from './cases/officialClients.js';

const MODEL = 'large';
const messages = [{ role: 'user' as const, content: 'Hello' }];
const body = { model: MODEL, messages };
const trueup = { feature: 'draft' };
const chat = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: MODEL,
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
};

let provider: ScriptedApi;
let clients: OfficialClients;
beforeAll(async () => {
  clients = await repositoryClients();
  provider = await startScriptedApi([
    { path: '/chat/completions', json: chat },
    { path: '/v1/messages', json: { id: 'msg_1', type: 'message', content: [] } },
    { path: '/audio/transcriptions', json: { text: 'Hi' } },
    { path: '/v2/chat', json: { id: 'c-1', finish_reason: 'COMPLETE' } },
    { path: ':generateContent', json: { candidates: [] } },
    { path: '/invoke', json: {} },
  ]);
});
afterAll(() => provider?.close());
beforeEach(() => {
  vi.stubEnv('TRUEUP_URL', undefined);
  vi.stubEnv('TRUEUP_KEY', undefined);
  provider.requests.length = 0;
  return () => vi.unstubAllEnvs();
});

type Attach = <Client extends object>(client: Client) => Client;

/** One call with the option by each client. The options are those of code without types. */
const CALLS: Record<string, (attach: Attach) => PromiseLike<unknown>> = {
  OpenAI: (attach) =>
    attach(new clients.OpenAI({ apiKey: 'key', baseURL: `${provider.origin}/v1` })).chat.completions.create({
      ...body,
      trueup,
    } as typeof body),
  'OpenAI, by a copy': (attach) =>
    attach(new clients.OpenAI({ apiKey: 'key', baseURL: `${provider.origin}/v1` }))
      .withOptions({ maxRetries: 0 })
      .chat.completions.create({ ...body, trueup } as typeof body),
  'OpenAI, by an upload': (attach) =>
    attach(
      new clients.OpenAI({ apiKey: 'key', baseURL: `${provider.origin}/v1` }),
    ).audio.transcriptions.create({
      model: MODEL,
      file: new File(['sound'], 'sound.mp3'),
      trueup,
    } as { model: string; file: File }),
  Anthropic: (attach) =>
    attach(new clients.Anthropic({ apiKey: 'key', baseURL: provider.origin })).messages.create({
      ...body,
      max_tokens: 9,
      trueup,
    } as typeof body & { max_tokens: number }),
  Google: (attach) =>
    attach(
      new clients.GoogleGenAI({ apiKey: 'key', httpOptions: { baseUrl: provider.origin } }),
    ).models.generateContent({ model: MODEL, contents: 'Hello', trueup } as {
      model: string;
      contents: string;
    }),
  Mistral: (attach) =>
    attach(new clients.Mistral({ apiKey: 'key', serverURL: provider.origin })).chat.complete({
      ...body,
      trueup,
    } as typeof body),
  Cohere: (attach) =>
    attach(new clients.CohereClientV2({ token: 'key', environment: provider.origin })).chat({
      ...body,
      trueup,
    } as typeof body),
  Bedrock: (attach) =>
    attach(
      new clients.BedrockRuntimeClient({
        region: 'us-east-1',
        endpoint: provider.origin,
        requestHandler: new clients.NodeHttpHandler(),
        credentials: { accessKeyId: 'id', secretAccessKey: 'secret' },
      }),
    ).send(
      new clients.InvokeModelCommand({ modelId: MODEL, body: '{}', trueup } as {
        modelId: string;
        body: string;
      }),
    ),
};

describe('the JavaScript package without an address or a key', () => {
  it.each(Object.entries(CALLS))('keeps the labels of one call from the provider (%s)', async (_, call) => {
    await call(observe);
    expect(provider.requests.map((request) => request.body)).toEqual([expect.not.stringContaining('trueup')]);
  });

  it('returns the same client, and leaves one that it does not know as it is', () => {
    const silent = new Trueup({ flushAtExit: false });
    const client = new clients.OpenAI({ apiKey: 'key' });
    for (let round = 0; round < 3; round += 1) expect(silent.observe(client)).toBe(client);
    const unknown = { name: 'unknown' };
    expect(silent.observe(unknown)).toBe(unknown);
    expect(Reflect.ownKeys(unknown)).toEqual(['name']);
    expect(silent.stats).toMatchObject({ recorded: 0, waiting: 0 });
  });

  it.each(Object.entries(CALLS))(
    'lets another connection observe its clients later (%s)',
    async (_, call) => {
      const service = new EventService();
      const earnest = service.connect();
      await call((client) => earnest.observe(earnest.observe(observe(client))));
      expect(await earnest.close()).toBe(true);
      expect(service.events).toMatchObject([{ feature: 'draft', status: 'ok', model: MODEL }]);
      expect(provider.requests.map((request) => request.body)).toEqual([
        expect.not.stringContaining('trueup'),
      ]);
    },
  );
});
