/** The Python clients under test, alone and in pairs with the Anthropic client's own tracing. */
import { alone, type ClientCase, langfuse, langfuseLegacy, otlp, planScope } from './clientCase.js';
import {
  ANTHROPIC_SDK,
  type ClientFacts,
  PYTHON_LANGFUSE_ANTHROPIC,
  PYTHON_LANGFUSE_LEGACY_OPENAI,
  PYTHON_LANGFUSE_OPENAI,
  PYTHON_OPENINFERENCE_ANTHROPIC,
  PYTHON_OPENINFERENCE_OPENAI,
  PYTHON_TRACELOOP_ANTHROPIC,
  PYTHON_TRACELOOP_OPENAI,
} from './clientFacts.js';

export interface PythonCase extends ClientCase {
  /** Name of the recording's file, without its ending. */
  recording: string;
  /** Versions that cannot be installed beside the others have an environment of their own. */
  isLegacy?: boolean;
  /** A second report of failed calls that nothing links to the first: no trace, no id, no usage. */
  alsoTellsFailures?: ClientFacts;
}

const openAi = planScope(['chat', 'responses', 'embeddings']);
const anthropic = planScope(['messages'], { hasStreamHelper: true });
const compressed = otlp('http/protobuf', 'gzip');

export const PYTHON_CLIENTS: readonly PythonCase[] = [
  {
    name: 'OpenInference for OpenAI',
    recording: 'openinference-openai',
    program: 'openinference_openai.py',
    scope: openAi,
    facts: PYTHON_OPENINFERENCE_OPENAI,
    environment: compressed,
  },
  {
    name: 'Traceloop for OpenAI',
    recording: 'traceloop-openai',
    program: 'traceloop_openai.py',
    scope: openAi,
    facts: PYTHON_TRACELOOP_OPENAI,
    environment: compressed,
  },
  {
    name: 'Langfuse for OpenAI',
    recording: 'langfuse-openai',
    program: 'langfuse_openai.py',
    scope: openAi,
    facts: PYTHON_LANGFUSE_OPENAI,
    environment: langfuse,
  },
  {
    name: 'Langfuse of version 2 for OpenAI',
    recording: 'langfuse-legacy',
    program: 'langfuse_legacy.py',
    isLegacy: true,
    scope: planScope(['chat']),
    facts: PYTHON_LANGFUSE_LEGACY_OPENAI,
    environment: langfuseLegacy,
  },
  {
    name: 'OpenInference for Anthropic',
    recording: 'openinference-anthropic',
    program: 'openinference_anthropic.py',
    scope: anthropic,
    facts: PYTHON_OPENINFERENCE_ANTHROPIC,
    environment: alone(compressed),
  },
  {
    name: 'Traceloop for Anthropic',
    recording: 'traceloop-anthropic',
    program: 'traceloop_anthropic.py',
    scope: anthropic,
    facts: PYTHON_TRACELOOP_ANTHROPIC,
    environment: alone(compressed),
  },
  {
    name: 'Langfuse by hand around Anthropic',
    recording: 'langfuse-anthropic',
    program: 'langfuse_anthropic.py',
    scope: planScope(['messages'], { hasStreams: false }),
    facts: PYTHON_LANGFUSE_ANTHROPIC,
    environment: alone(langfuse),
  },
  {
    name: "the Anthropic SDK's own tracing",
    recording: 'anthropic-sdk',
    program: 'anthropic_sdk.py',
    scope: anthropic,
    facts: ANTHROPIC_SDK,
    environment: compressed,
  },
  {
    name: "OpenInference beside the Anthropic SDK's own tracing",
    recording: 'openinference-beside-anthropic-sdk',
    program: 'openinference_anthropic.py',
    scope: anthropic,
    facts: ANTHROPIC_SDK,
    environment: compressed,
  },
  {
    name: "Traceloop beside the Anthropic SDK's own tracing",
    recording: 'traceloop-beside-anthropic-sdk',
    program: 'traceloop_anthropic.py',
    scope: anthropic,
    facts: ANTHROPIC_SDK,
    alsoTellsFailures: PYTHON_TRACELOOP_ANTHROPIC,
    environment: compressed,
  },
  {
    name: "Langfuse by hand beside the Anthropic SDK's own tracing",
    recording: 'langfuse-beside-anthropic-sdk',
    program: 'langfuse_anthropic.py',
    scope: planScope(['messages'], { hasStreams: false }),
    facts: ANTHROPIC_SDK,
    environment: langfuse,
  },
];
