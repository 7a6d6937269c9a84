import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CostCalculator, type PricedTokens } from '../../../clients/costCalculator.js';
import { type ScriptedAnswer, startScriptedApi } from '../../../fakes/scriptedApi.js';
import { startTestApi, type TestApi } from '../../../support/api.js';
import { compareRuns, type ObservedCalls } from './compareRuns.js';
import type { LoadClients, OfficialClients } from './officialClients.js';

const calculator = new CostCalculator(new URL('../../../../data/prices.json', import.meta.url));
const NO_TOKENS = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0 };
const nowSeconds = Math.floor(Date.now() / 1_000);

let api: TestApi;
let clients: OfficialClients;

function usdOf(provider: string, model: string, tokens: Partial<PricedTokens>, isBatch = false): string {
  const atMillis = Date.now();
  return calculator.cost({ provider, model, atMillis, tokens: { ...NO_TOKENS, ...tokens }, isBatch }).usd;
}

const observe = (answers: readonly ScriptedAnswer[], calls: ObservedCalls) =>
  compareRuns(api, answers, calls);

const chat = (id: string, model: string) => ({
  id,
  object: 'chat.completion',
  created: nowSeconds,
  model,
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
});
const messages = [{ role: 'user' as const, content: 'Hello' }];

/** Other hosts, uploads and batches, with and without the package. */
export function testHostsAndBatches(versions: string, load: LoadClients): void {
  describe(`hosts, uploads and batches (${versions}) in the JavaScript package`, () => {
    beforeAll(async () => {
      api = await startTestApi();
      clients = await load();
    });
    afterAll(() => api?.close());

    it("names the biller of Azure's client and of xAI through OpenAI's", async () => {
      const events = await observe(
        [
          { path: '/deployments/gpt-4o/chat/completions', json: chat('chatcmpl-az', 'gpt-4o-2024-08-06') },
          { path: '/v1/chat/completions', json: chat('chatcmpl-x', 'grok-4') },
        ],
        async (fetchTo, observed) => {
          const azure = observed(
            new clients.AzureOpenAI({
              apiKey: 'key',
              endpoint: 'https://acme.openai.azure.com',
              apiVersion: '2024-10-21',
              fetch: fetchTo,
            }),
          );
          const xai = observed(
            new clients.OpenAI({ apiKey: 'key', baseURL: 'https://api.x.ai/v1', fetch: fetchTo }),
          );
          const copy = xai.withOptions({ maxRetries: 0 });
          return [
            await azure.chat.completions.create({ model: 'gpt-4o', messages }),
            await xai.chat.completions.create({ model: 'grok-4', messages }),
            await copy.chat.completions
              .create({ model: 'grok-4', messages })
              .asResponse()
              .then((raw) => raw.text()),
          ];
        },
      );
      expect(events.map((event) => [event.provider, event.billed_by, event.model, event.usd]).sort()).toEqual(
        [
          [
            'azure_openai',
            'azure_openai',
            'gpt-4o',
            usdOf('azure_openai', 'gpt-4o-2024-08-06', { input: 100, output: 20 }),
          ],
          // Two reports with one response id are one call.
          ['xai', 'xai', 'grok-4', usdOf('xai', 'grok-4', { input: 100, output: 20 })],
        ],
      );
    });

    it('reports audio, images and speech', async () => {
      const events = await observe(
        [
          {
            path: '/v1/audio/transcriptions',
            json: {
              text: 'Hi',
              usage: {
                type: 'tokens',
                input_tokens: 14,
                input_token_details: { text_tokens: 0, audio_tokens: 14 },
                output_tokens: 45,
                total_tokens: 59,
              },
            },
          },
          {
            path: '/v1/images/generations',
            json: {
              created: nowSeconds,
              data: [{ b64_json: 'AA==' }],
              usage: {
                input_tokens: 50,
                input_tokens_details: { text_tokens: 50, image_tokens: 0 },
                output_tokens: 50,
                total_tokens: 100,
              },
            },
          },
          { path: '/v1/audio/speech', text: 'sound', headers: { 'content-type': 'audio/mpeg' } },
        ],
        async (fetchTo, observed) => {
          const client = observed(new clients.OpenAI({ apiKey: 'key', fetch: fetchTo }));
          const file = new File(['sound'], 'sound.mp3');
          const speech = await client.audio.speech.create({
            model: 'gpt-4o-mini-tts',
            voice: 'alloy',
            input: 'Hi',
          });
          const labels = { trueup: { feature: 'minutes' } };
          return [
            await client.audio.transcriptions.create({ model: 'gpt-4o-transcribe', file, ...labels }),
            await client.images.generate({ model: 'gpt-image-1', prompt: 'a cat' }),
            await speech.text(),
          ];
        },
      );
      expect(events.map((event) => `${event.model} ${event.output_tokens} ${event.feature}`).sort()).toEqual([
        'gpt-4o-mini-tts 0 null',
        'gpt-4o-transcribe 45 minutes',
        'gpt-image-1 50 null',
      ]);
    });

    it('reports each result of a batch once, at half the price, however often it is read', async () => {
      const line = (index: number, model: string) =>
        JSON.stringify({
          id: `batch_req_${index}`,
          custom_id: `c-${index}`,
          response: { status_code: 200, request_id: `r-${index}`, body: chat(`chatcmpl-b${index}`, model) },
          error: null,
        });
      const refused = JSON.stringify({
        id: 'batch_req_9',
        custom_id: 'c-9',
        response: { status_code: 400, body: { error: { message: 'no' } } },
      });
      const events = await observe(
        [
          {
            path: '/v1/batches/batch_1',
            json: {
              id: 'batch_1',
              object: 'batch',
              status: 'completed',
              output_file_id: 'file-out',
              completed_at: nowSeconds,
            },
          },
          {
            path: '/v1/files/file-out/content',
            text: `${line(1, 'gpt-4o-2024-08-06')}\n${line(2, 'gpt-4o-2024-08-06')}\n${refused}\n`,
          },
        ],
        async (fetchTo, observed) => {
          const client = observed(new clients.OpenAI({ apiKey: 'key', fetch: fetchTo }));
          const batch = await client.batches.retrieve('batch_1');
          const first = await (await client.files.content(batch.output_file_id as string)).text();
          const second = await (await client.files.content('file-out')).arrayBuffer();
          return [first, second.byteLength];
        },
      );
      const usd = usdOf('openai', 'gpt-4o-2024-08-06', { input: 100, output: 20 }, true);
      expect(
        events.map((event) => [event.request_id, event.is_batch, event.batch_id, event.usd]).sort(),
      ).toEqual([
        ['chatcmpl-b1', true, 'batch_1', usd],
        ['chatcmpl-b2', true, 'batch_1', usd],
      ]);
    });

    it('reports a result without a time of its own once, however often it is read', async () => {
      const model = 'text-embedding-3-small';
      const line = JSON.stringify({
        id: 'batch_req_e1',
        custom_id: 'c-1',
        response: {
          status_code: 200,
          body: { object: 'list', model, data: [], usage: { prompt_tokens: 100, total_tokens: 100 } },
        },
        error: null,
      });
      const provider = await startScriptedApi([
        { path: '/v1/files/file-embedded/content', text: `${line}\n` },
      ]);
      try {
        const events = await observe([], async (_, observed) => {
          const baseURL = `${provider.origin}/v1`;
          const client = observed(new clients.OpenAI({ apiKey: 'key', baseURL }));
          const seen = [];
          for (let round = 0; round < 2; round += 1) {
            seen.push(await (await client.files.content('file-embedded')).text());
            await sleep(5);
          }
          return seen;
        });
        expect(events.map((event) => [event.request_id, event.is_batch])).toEqual([['batch_req_e1', true]]);
      } finally {
        await provider.close();
      }
    });

    it("reports the results of Anthropic's batches as they are read", async () => {
      const message = (index: number) =>
        JSON.stringify({
          custom_id: `c-${index}`,
          result: {
            type: index === 3 ? 'errored' : 'succeeded',
            message: {
              id: `msg_b${index}`,
              type: 'message',
              role: 'assistant',
              model: 'claude-haiku-4-5-20251001',
              content: [{ type: 'text', text: 'Hi' }],
              stop_reason: 'end_turn',
              usage: {
                input_tokens: 100,
                cache_creation_input_tokens: 0,
                cache_read_input_tokens: 50,
                output_tokens: 20,
                service_tier: 'batch',
              },
            },
          },
        });
      const events = await observe(
        [
          {
            path: '/v1/messages/batches/msgbatch_1/results',
            text: [1, 2, 3].map((index) => `${message(index)}\n`).join(''),
          },
          {
            path: '/v1/messages/batches/msgbatch_1',
            json: {
              id: 'msgbatch_1',
              type: 'message_batch',
              processing_status: 'ended',
              results_url: 'https://api.anthropic.com/v1/messages/batches/msgbatch_1/results',
            },
          },
        ],
        async (fetchTo, observed) => {
          const client = observed(new clients.Anthropic({ apiKey: 'key', fetch: fetchTo }));
          const seen: unknown[] = [];
          for (let round = 0; round < 2; round += 1)
            for await (const item of await client.messages.batches.results('msgbatch_1')) seen.push(item);
          return seen;
        },
      );
      const tokens = { input: 100, cacheRead: 50, output: 20 };
      const usd = usdOf('anthropic', 'claude-haiku-4-5-20251001', tokens, true);
      expect(
        events.map((event) => [event.request_id, event.is_batch, event.batch_id, event.usd]).sort(),
      ).toEqual([
        ['msg_b1', true, 'msgbatch_1', usd],
        ['msg_b2', true, 'msgbatch_1', usd],
      ]);
    });

    it("reports Cohere's rerank, which has search units, as a call without tokens", async () => {
      const meta = { api_version: { version: '2' }, billed_units: { search_units: 1 } };
      const results = [{ index: 0, relevance_score: 0.9 }];
      const json = { id: 'rerank-1', results, meta };
      const provider = await startScriptedApi([{ path: '/v2/rerank', json }]);
      try {
        const events = await observe([], async (_, observed) => {
          const client = observed(new clients.CohereClientV2({ token: 'key', environment: provider.origin }));
          return client.rerank({ model: 'rerank-v3.5', query: 'a', documents: ['a', 'b'] });
        });
        expect(events).toMatchObject([
          { provider: 'cohere', model: 'rerank-v3.5', request_id: 'rerank-1', status: 'ok', input_tokens: 0 },
        ]);
      } finally {
        await provider.close();
      }
    });

    it("reports the answers in Google's batches once, however often they are fetched", async () => {
      const model = 'gemini-2.5-flash';
      const answer = (responseId?: string) => ({
        response: {
          candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
          usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 20, totalTokenCount: 120 },
          modelVersion: model,
          ...(responseId ? { responseId } : {}),
        },
      });
      const job = {
        name: 'batches/b1',
        metadata: {
          model: `models/${model}`,
          state: 'BATCH_STATE_SUCCEEDED',
          createTime: new Date(nowSeconds * 1_000).toISOString(),
          endTime: new Date(nowSeconds * 1_000).toISOString(),
          output: {
            inlinedResponses: {
              inlinedResponses: [answer('resp-1'), answer(), { error: { code: 3, message: 'no' } }],
            },
          },
        },
        done: true,
      };
      const provider = await startScriptedApi([{ path: '/batches/b1', json: job }]);
      try {
        const httpOptions = { baseUrl: provider.origin };
        const events = await observe([], async (_, observed) => {
          const ai = observed(new clients.GoogleGenAI({ apiKey: 'key', httpOptions }));
          const [first, second] = [
            await ai.batches.get({ name: 'batches/b1' }),
            await ai.batches.get({ name: 'batches/b1' }),
          ];
          expect(first.dest?.inlinedResponses?.length).toBe(3);
          return [first, second];
        });
        const usd = usdOf('google', model, { input: 100, output: 20 }, true);
        expect(
          events.map((event) => [event.request_id, event.is_batch, event.batch_id, event.usd]).sort(),
        ).toEqual([
          ['batches/b1/1', true, 'batches/b1', usd],
          ['resp-1', true, 'batches/b1', usd],
        ]);
      } finally {
        await provider.close();
      }
    });

    it("reports the results in Mistral's files and jobs once, however they are read", async () => {
      const model = 'mistral-large-2411';
      const item = (index: number) => ({
        id: `job-1-${index}`,
        custom_id: `c-${index}`,
        response: { status_code: 200, body: chat(`cmpl-m${index}`, model) },
        error: null,
      });
      const refused = {
        id: 'job-1-9',
        custom_id: 'c-9',
        response: { status_code: 422, body: { detail: 'no' } },
      };
      const job = (more: object) => ({
        object: 'batch',
        input_files: ['file-in'],
        endpoint: '/v1/chat/completions',
        model,
        errors: [],
        status: 'SUCCESS',
        created_at: nowSeconds,
        completed_at: nowSeconds,
        total_requests: 2,
        completed_requests: 2,
        succeeded_requests: 2,
        failed_requests: 0,
        ...more,
      });
      const lines = [item(1), item(2), refused].map((line) => `${JSON.stringify(line)}\n`).join('');
      const provider = await startScriptedApi([
        { path: '/v1/batch/jobs/job-1', json: job({ id: 'job-1', output_file: 'file-out' }) },
        { path: '/v1/batch/jobs/job-2', json: job({ id: 'job-2', outputs: [item(3)] }) },
        {
          path: '/v1/files/file-out/content',
          text: lines,
          headers: { 'content-type': 'application/octet-stream' },
        },
      ]);
      try {
        const events = await observe([], async (_, observed) => {
          const client = observed(new clients.Mistral({ apiKey: 'key', serverURL: provider.origin }));
          const { outputFile } = await client.batch.jobs.get({ jobId: 'job-1' });
          const file = () => client.files.download({ fileId: outputFile as string });
          const first = await new Response(await file()).text();
          const decoder = new TextDecoder();
          let second = '';
          for await (const chunk of (await file()) as unknown as AsyncIterable<Uint8Array>)
            second += decoder.decode(chunk, { stream: true });
          expect(first).toBe(lines);
          expect(second).toBe(lines);
          return [first, second, (await client.batch.jobs.get({ jobId: 'job-2' })).id];
        });
        const usd = usdOf('mistral', model, { input: 100, output: 20 }, true);
        const own = events.filter((event) => event.batch_id === 'job-1');
        expect(own.map((event) => [event.request_id, event.is_batch, event.usd]).sort()).toEqual([
          ['cmpl-m1', true, usd],
          ['cmpl-m2', true, usd],
        ]);
        // Older versions of the client know no results in the job.
        expect(events.length - own.length).toBe(events.some((event) => event.batch_id === 'job-2') ? 1 : 0);
      } finally {
        await provider.close();
      }
    });

    it("reports the answers in the file of Google's batch as it is downloaded", async () => {
      const model = 'gemini-2.5-flash';
      const line = (key: string, responseId?: string) =>
        JSON.stringify({
          key,
          response: {
            candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
            usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 20, totalTokenCount: 120 },
            modelVersion: model,
            ...(responseId ? { responseId } : {}),
          },
        });
      const text = `${line('a', 'resp-f1')}\n${line('b')}\n${JSON.stringify({ key: 'c', error: { code: 3 } })}\n`;
      const ended = new Date(nowSeconds * 1_000).toISOString();
      const provider = await startScriptedApi([
        {
          path: '/batches/b2',
          json: {
            name: 'batches/b2',
            metadata: {
              model: `models/${model}`,
              state: 'BATCH_STATE_SUCCEEDED',
              createTime: ended,
              endTime: ended,
              output: { responsesFile: 'files/results-b2' },
            },
            done: true,
          },
        },
        { path: '/files/results-b2:download', text },
      ]);
      const folder = mkdtempSync(join(tmpdir(), 'trueup-batch-'));
      try {
        const httpOptions = { baseUrl: provider.origin };
        const events = await observe([], async (_, observed) => {
          const ai = observed(new clients.GoogleGenAI({ apiKey: 'key', httpOptions }));
          const job = await ai.batches.get({ name: 'batches/b2' });
          expect(job.dest?.fileName).toBe('files/results-b2');
          const downloadPath = join(folder, 'results.jsonl');
          for (let round = 0; round < 2; round += 1) {
            await ai.files.download({ file: job.dest?.fileName as string, downloadPath });
            expect(readFileSync(downloadPath, 'utf8')).toBe(text);
          }
          return job;
        });
        const usd = usdOf('google', model, { input: 100, output: 20 }, true);
        expect(
          events.map((event) => [event.request_id, event.is_batch, event.batch_id, event.usd]).sort(),
        ).toEqual([
          ['files/results-b2/1', true, 'batches/b2', usd],
          ['resp-f1', true, 'batches/b2', usd],
        ]);
      } finally {
        rmSync(folder, { recursive: true });
        await provider.close();
      }
    });
  });
}
