/** An application that calls OpenAI through Langfuse's wrapper; configured by LANGFUSE_* variables alone. */
import { observeOpenAI } from '@langfuse/openai';
import { LangfuseSpanProcessor } from '@langfuse/otel';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import OpenAI from 'openai';
import run from './run.cjs';

const processor = new LangfuseSpanProcessor();
const provider = new NodeTracerProvider({ spanProcessors: [processor] });
provider.register();

run.runProgram(async () => {
  const { plan, openAiBaseUrl } = run.readRun();
  const client = observeOpenAI(new OpenAI({ apiKey: 'sk-test', baseURL: openAiBaseUrl }));
  const failures = await run.makeCalls(plan, run.openAiMakers(client));
  await provider.shutdown();
  return failures;
});
