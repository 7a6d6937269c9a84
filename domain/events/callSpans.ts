/**
 * Which spans are calls to a model provider. Aggregates repeat the usage of the calls inside them:
 * counting them would double the bill.
 */
import { USAGE_MEANINGS } from './attributeTable.js';
import type { SpanAttributes } from './spanAttributes.js';

const CALL_OPERATIONS = new Set(['chat', 'text_completion', 'generate_content', 'embeddings']);
const AGGREGATE_OPERATIONS = new Set([
  'invoke_agent',
  'create_agent',
  'invoke_workflow',
  'execute_tool',
  'agent_step',
]);
const CALL_KINDS = new Set(['LLM', 'EMBEDDING']);
const AGGREGATE_KINDS = new Set(['AGENT', 'CHAIN', 'TOOL']);
const CALL_OBSERVATIONS = new Set(['generation', 'embedding']);
const AI_SDK_CALL = /\.do(?:Generate|Stream|Embed|Rerank)$/;
/** Requests of the Anthropic SDK that name a model and are free: it traces them beside the calls. */
const FREE_REQUESTS = new Set(['anthropic.messages.count_tokens', 'anthropic.sessions.create']);

/** Whether a span is one call: by its marker, else when it names a model or carries usage. */
export function isCallSpan(attributes: SpanAttributes, spanName: string): boolean {
  const operation = attributes.label('operation');
  if (operation !== undefined && AGGREGATE_OPERATIONS.has(operation)) return false;
  const kind = attributes.label('spanKind')?.toUpperCase();
  if (kind !== undefined && AGGREGATE_KINDS.has(kind)) return false;
  const observation = attributes.label('observationType')?.toLowerCase();
  if (observation !== undefined && !CALL_OBSERVATIONS.has(observation)) return false;
  const aiOperation = attributes.label('aiOperation');
  if (aiOperation !== undefined && !AI_SDK_CALL.test(aiOperation)) return false;
  if (FREE_REQUESTS.has(spanName)) return false;
  if (operation !== undefined && CALL_OPERATIONS.has(operation)) return true;
  if (kind !== undefined && CALL_KINDS.has(kind)) return true;
  if (observation !== undefined || aiOperation !== undefined) return true;
  return (
    attributes.has('requestModel') ||
    attributes.has('responseModel') ||
    USAGE_MEANINGS.some((meaning) => attributes.has(meaning))
  );
}
