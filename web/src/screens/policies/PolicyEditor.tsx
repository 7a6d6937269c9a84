import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { isProblem, query } from '../../api/client';
import { Button } from '../../parts/forms/Button';
import { Checkbox } from '../../parts/forms/Checkboxes';
import { Form, TextField } from '../../parts/forms/Fields';
import { FormError } from '../../parts/forms/FormError';
import { useToast } from '../../parts/Toasts';
import { PolicyPreview } from './PolicyPreview';
import { PromptNote } from './PromptNote';
import { centsOf, configOf, type Draft, draftOf, type Policy, type PolicyType } from './policyWords';

/** The configuration of a policy, with what it would have flagged of the newest calls. */
export function PolicyEditor({
  type,
  present,
  onClose,
}: {
  type: PolicyType;
  present: Policy | undefined;
  onClose: () => void;
}) {
  const client = useQueryClient();
  const toast = useToast();
  const [draft, setDraft] = useState<Draft>(() => draftOf(present));
  const [isEnabled, setIsEnabled] = useState(present?.enabled ?? true);
  const config = configOf(type, draft);
  const put = query.useMutation('put', '/api/v1/policies/{policy_type}', {
    onSuccess: async ({ warnings, enabled }) => {
      await client.invalidateQueries({ queryKey: ['get', '/api/v1/policies'] });
      toast(
        warnings && warnings.length > 0
          ? `The policy is saved. ${warnings.length} of its patterns are skipped.`
          : enabled
            ? 'The policy is saved. It judges calls from now on.'
            : 'The policy is saved and off.',
      );
      onClose();
    },
  });
  const field = (
    name: keyof Draft,
    label: string,
    path: string,
    rest: { help?: string; placeholder?: string } = {},
  ) => (
    <TextField
      label={label}
      value={draft[name]}
      onChange={(text) => setDraft((before) => ({ ...before, [name]: text }))}
      error={faultOf(put.error, path)}
      {...(name === 'dollars' ? { inputMode: 'decimal' as const } : { lines: name === 'models' ? 8 : 5 })}
      {...rest}
    />
  );
  return (
    <>
      <Form
        onSubmit={() => {
          if (config)
            put.mutate({ params: { path: { policy_type: type } }, body: { config, enabled: isEnabled } });
        }}
        actions={
          <>
            <Button kind="primary" type="submit" isPending={put.isPending} isDisabled={!config}>
              {put.isPending ? 'Saving …' : 'Save'}
            </Button>
            <Button onPress={onClose}>Cancel</Button>
          </>
        }
      >
        <Checkbox isSelected={isEnabled} onChange={setIsEnabled}>
          The policy is on
        </Checkbox>
        {type === 'approved_models' &&
          field('models', 'Approved models, one a line', 'config.models', {
            help: 'Compared character by character with the model of the call. Empty: nothing is judged.',
            placeholder: 'gpt-5-mini',
          })}
        {type === 'banned_patterns' && (
          <>
            {field('regexes', 'Patterns, one a line', 'config.regexes', {
              help: 'Regular expressions in RE2 syntax, searched for in the first 512 characters of each prompt.',
              placeholder: '(?i)password\\s*[:=]',
            })}
            <PromptNote />
          </>
        )}
        {type === 'key_environment_check' && (
          <>
            {field('prefixes', 'Production keys begin with, one a line', 'config.prod_key_prefixes', {
              help: 'Beginnings of ids of provider keys. Empty: nothing is judged.',
            })}
            {field('environments', 'Environments that may use them, one a line', 'config.allowed_envs', {
              placeholder: 'production',
            })}
          </>
        )}
        {type === 'approval_required_threshold_cents' && (
          <TextField
            label="US dollars a call"
            value={draft.dollars}
            onChange={(dollars) => setDraft((before) => ({ ...before, dollars }))}
            inputMode="decimal"
            help="A call that costs as much or more is flagged. 0 judges nothing."
            error={
              faultOf(put.error, 'config.threshold_cents') ??
              (draft.dollars !== '' && centsOf(draft.dollars) === undefined
                ? 'Write dollars with at most two decimals, for example 2.20.'
                : undefined)
            }
          />
        )}
        <FormError error={put.error} />
      </Form>
      {config && <PolicyPreview type={type} config={config} />}
    </>
  );
}

/** Faults of a field and of its entries: `config.models[3]` belongs to `config.models`. */
function faultOf(error: unknown, path: string): string | undefined {
  if (!isProblem(error)) return undefined;
  const faults = error.errors?.filter(({ field }) => field === path || field.startsWith(`${path}[`)) ?? [];
  return (
    faults
      .map(({ field, message }) => {
        const entry = /\[(\d+)\]/.exec(field)?.[1];
        return entry === undefined ? message : `Line ${Number(entry) + 1} ${message}`;
      })
      .join(' · ') || undefined
  );
}
