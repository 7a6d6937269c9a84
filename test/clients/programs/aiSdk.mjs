/** An application on the AI SDK, which calls OpenAI and Anthropic itself, with its OpenTelemetry package. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { OpenTelemetry } from '@ai-sdk/otel';
import { embed, generateText, registerTelemetry, streamText } from 'ai';
import run from './run.cjs';
import tracing from './tracing.cjs';

const provider = tracing.startTracing('aiSdk', []);
registerTelemetry(new OpenTelemetry());

run.runProgram(async () => {
  const { plan, openAiBaseUrl, anthropicBaseUrl } = run.readRun();
  const openAi = createOpenAI({ apiKey: 'sk-test', baseURL: openAiBaseUrl });
  const anthropic = createAnthropic({ apiKey: 'sk-ant-test', baseURL: `${anthropicBaseUrl}/v1` });

  async function make(model, call) {
    const prompt = run.promptOf(call);
    if (!call.isStream) return generateText({ model, prompt });
    const controller = new AbortController();
    let isFailed = false;
    const result = streamText({
      model,
      prompt,
      abortSignal: controller.signal,
      onError: () => {
        isFailed = true;
      },
    });
    for await (const _text of result.textStream) {
      if (call.fate === 'abort') controller.abort();
    }
    if (isFailed || call.fate === 'abort') throw new Error(`${call.id} ended early`);
    return result;
  }

  const failures = await run.makeCalls(plan, {
    chat: (call) => make(openAi.chat(call.model), call),
    responses: (call) => make(openAi.responses(call.model), call),
    messages: (call) => make(anthropic(call.model), call),
    embeddings: (call) => embed({ model: openAi.embedding(call.model), value: run.promptOf(call) }),
  });
  await provider.shutdown();
  return failures;
});
