import { Notice } from '../../parts/States';

/** Prompts that are not sent can be searched by the wrapper alone, if it has the option. */
export function PromptNote() {
  return (
    <Notice>
      Trueup searches the prompts that arrive here. The wrappers send none unless <code>capturePayloads</code>{' '}
      is on. With <code>policyVerdicts</code> they search the prompts where they are and send the verdict
      alone.
    </Notice>
  );
}
