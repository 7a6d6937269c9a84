/**
 * A process of its own that sets one document and ends. The typesetter is native code: a fault in it ends this
 * process and no other. It receives everything in one message and has neither settings nor secrets.
 */
import { NodeCompiler } from '@myriaddreamin/typst-ts-node-compiler';

/** What a document is set from. */
export interface RenderJob {
  template: string;
  /** JSON; the template reads it as data, so nothing in it is markup. */
  data: string;
  fontPaths: string[];
  /** An empty folder: whatever lies in it a template could read. */
  workspace: string;
  /** Seconds since 1970 at which the document was made, by its own metadata: the same job results in the same bytes. */
  createdSeconds: number;
}

export type RenderAnswer = { pdf: Uint8Array; standard: string | null } | { error: string };

const STANDARD = 'a-2a';

process.once('message', (job: RenderJob) => {
  process.send?.(render(job), () => process.exit(0));
});

/** As archivable, tagged PDF; where a glyph is in none of the fonts as plain tagged PDF with fonts of the machine. */
function render(job: RenderJob): RenderAnswer {
  try {
    return { pdf: compile(job, false), standard: STANDARD };
  } catch (first) {
    try {
      return { pdf: compile(job, true), standard: null };
    } catch {
      return { error: reasonOf(first) };
    }
  }
}

/** The typesetter reports its findings in `code`, and sometimes nothing. */
function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const told = [message, code].filter((one) => typeof one === 'string' && one !== '').join(' ');
  return (told || 'the typesetter found a fault').slice(0, 4_000);
}

function compile(job: RenderJob, isLoose: boolean): Uint8Array {
  const compiler = NodeCompiler.create({
    workspace: job.workspace,
    fontArgs: [{ fontPaths: job.fontPaths }],
  });
  return compiler.pdf(
    { mainFileContent: job.template, inputs: { data: job.data, loose: isLoose ? 'yes' : 'no' } },
    { creationTimestamp: job.createdSeconds, ...(isLoose ? {} : { pdfStandard: STANDARD }) },
  );
}
