import type { OpenCall, Reading, Recorder } from '../calls.js';
import { type Labels, ownLabels, withoutOption } from '../labels.js';
import { tapStream } from './iterate.js';
import { list, merge, numberOf, object, readAnthropic, text } from './readings.js';
import { parse, quietly } from './tap.js';

/** The client of AWS Bedrock: its middleware runs once for each call, outside of its retries. */

type Loose = Record<string, unknown>;
type Handler = (args: { input: Loose }) => Promise<{ output: Loose; response?: { headers?: Loose } }>;

interface BedrockClient {
  middlewareStack: {
    add(middleware: (next: Handler, context: { commandName?: string }) => Handler, options: object): void;
  };
}

const COMMANDS: Record<string, 'invoke' | 'invokeStream' | 'converse' | 'converseStream'> = {
  InvokeModelCommand: 'invoke',
  InvokeModelWithResponseStreamCommand: 'invokeStream',
  ConverseCommand: 'converse',
  ConverseStreamCommand: 'converseStream',
};

export function isBedrock(client: Loose): boolean {
  return (
    typeof client.send === 'function' &&
    typeof object(client.middlewareStack)?.add === 'function' &&
    object(client.config)?.serviceId === 'Bedrock Runtime'
  );
}

export function attachBedrock(client: Loose, recorder: Recorder, labels: Labels): void {
  const { middlewareStack } = client as unknown as BedrockClient;
  middlewareStack.add(
    (next, context) => async (args) => {
      const kind = COMMANDS[context.commandName ?? ''];
      return kind === undefined ? next(args) : callOf(kind, next, args, recorder, labels);
    },
    // It replaces the one of a connection without an address: a stack refuses a second one of this name.
    { step: 'initialize', name: 'trueup', priority: 'high', override: true },
  );
}

async function callOf(
  kind: (typeof COMMANDS)[string],
  next: Handler,
  args: { input: Loose },
  recorder: Recorder,
  labels: Labels,
): ReturnType<Handler> {
  const isInvoke = kind === 'invoke' || kind === 'invokeStream';
  const body = isInvoke ? (parse(bodyText(args.input.body)) ?? {}) : args.input;
  const given = object(body) ?? {};
  const call = recorder.begin({
    provider: 'aws_bedrock',
    model: text(args.input.modelId) ?? 'unknown',
    baseUrl: undefined,
    body,
    maxOutputTokens:
      numberOf(object(given.inferenceConfig)?.maxTokens) ??
      numberOf(given.max_tokens) ??
      numberOf(given.max_gen_len) ??
      numberOf(object(given.textGenerationConfig)?.maxTokenCount),
    clientLabels: labels,
    labels: ownLabels(args.input),
  });
  const plain = withoutOption(args.input);
  const input = call.newModel === undefined ? plain : { ...plain, modelId: call.newModel };
  const reading: Reading = {};
  let result: Awaited<ReturnType<Handler>>;
  try {
    result = await next({ ...args, input });
  } catch (error) {
    call.fail(error);
    throw error;
  }
  const { output } = result;
  reading.requestId = text(object(output.$metadata)?.requestId);
  quietly(() => note(kind, call, reading, result));
  return result;
}

function note(
  kind: (typeof COMMANDS)[string],
  call: OpenCall,
  reading: Reading,
  { output, response }: Awaited<ReturnType<Handler>>,
): void {
  switch (kind) {
    case 'converse':
      merge(reading, readConverse(output));
      if (call.capturesPayloads) reading.answer = { output: output.output };
      call.end('ok', reading);
      break;
    case 'converseStream':
      tapStream(output.stream, call, reading, (event) => merge(reading, readConverseEvent(event)));
      break;
    case 'invoke':
      merge(reading, readInvoked(parse(bodyText(output.body)), response?.headers));
      call.end('ok', reading);
      break;
    default:
      tapStream(output.body, call, reading, (event) => {
        const chunk = parse(bodyText(object(object(event)?.chunk)?.bytes));
        merge(reading, readInvokedChunk(chunk, reading));
      });
  }
}

function bodyText(body: unknown): string {
  if (typeof body === 'string') return body;
  return body instanceof Uint8Array ? new TextDecoder().decode(body) : '';
}

function readConverse(output: Loose): Reading {
  return {
    usage: object(output.usage),
    stopReason: text(output.stopReason),
    serviceTier: text(object(output.serviceTier)?.type),
  };
}

function readConverseEvent(event: unknown): Reading {
  const given = object(event);
  return {
    usage: object(object(given?.metadata)?.usage),
    stopReason: text(object(given?.messageStop)?.stopReason),
  };
}

/** Each maker's own answer; counts are in it or in the headers. */
function readInvoked(value: unknown, headers: Loose | undefined): Reading {
  const answer = object(value) ?? {};
  const counted = (name: string) => Number(headers?.[`x-amzn-bedrock-${name}-token-count`] ?? Number.NaN);
  const input = counted('input');
  const output = counted('output');
  const usage = object(answer.usage) ?? (Number.isNaN(input) ? undefined : tokens(input, output));
  const [choice] = list(answer.choices);
  return {
    usage,
    responseModel: undefined,
    stopReason:
      text(answer.stop_reason) ??
      text(answer.stopReason) ??
      text(object(choice)?.finish_reason) ??
      text(object(list(answer.results)[0])?.completionReason),
  };
}

function readInvokedChunk(value: unknown, before: Reading): Reading {
  const event = object(value);
  if (event?.type === 'message_start' || event?.type === 'message_delta') {
    // The id is Anthropic's, and the model is named by Anthropic's id, which Bedrock's price list does not have.
    const { usage, stopReason } = readAnthropic(event, before);
    return { usage, stopReason };
  }
  const metrics = object(event?.['amazon-bedrock-invocationMetrics']);
  const input = numberOf(metrics?.inputTokenCount);
  if (input === null || before.usage !== undefined) return { stopReason: text(event?.stop_reason) };
  return { usage: tokens(input, numberOf(metrics?.outputTokenCount) ?? 0) };
}

function tokens(input: number, output: number): object {
  return { input_tokens: input, output_tokens: Number.isNaN(output) ? 0 : output };
}
