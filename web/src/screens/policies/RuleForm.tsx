import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { errorText, isProblem, query } from '../../api/client';
import { Button } from '../../parts/forms/Button';
import { Form, Select, TextField } from '../../parts/forms/Fields';
import { Notice } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { RULE_TYPES, type Rule, type RuleType, settingOf } from './ruleTypes';

const TYPE_OPTIONS = Object.entries(RULE_TYPES).map(([value, { name }]) => ({
  value: value as RuleType,
  label: name,
}));

/** Makes or changes a rule. The type of a rule never changes, because calls name the rule. */
export function RuleForm({ rule, onEnd }: { rule: Rule | undefined; onEnd: () => void }) {
  const client = useQueryClient();
  const toast = useToast();
  const [type, setType] = useState<RuleType>(rule?.type ?? 'session_budget_usd');
  const [name, setName] = useState(rule?.name ?? '');
  const [setting, setSetting] = useState(rule ? settingOf(rule) : '');
  const [mode, setMode] = useState<Rule['mode']>(rule?.mode ?? 'observe');
  const [team, setTeam] = useState(rule?.scope.team_id ?? '');
  const [feature, setFeature] = useState(rule?.scope.feature ?? '');
  const [model, setModel] = useState(rule?.scope.model ?? '');
  const options = {
    onSuccess: async () => {
      toast('The rule is saved. Wrappers apply it when they next ask for their rules.');
      onEnd();
      await client.invalidateQueries({ queryKey: ['get', '/api/v1/enforcement-rules'] });
    },
  };
  const make = query.useMutation('post', '/api/v1/enforcement-rules', options);
  const change = query.useMutation('patch', '/api/v1/enforcement-rules/{id}', options);
  const saving = rule ? change : make;
  const { field, label, isNumber } = RULE_TYPES[type];
  const faultOf = (...names: string[]) =>
    isProblem(saving.error)
      ? saving.error.errors?.find((one) => names.includes(one.field))?.message
      : undefined;
  const submit = () => {
    const text = setting.trim();
    const body = {
      name: name.trim() || null,
      config: { [field]: isNumber && text !== '' ? Number(text) : text },
      scope: { team_id: team.trim() || null, feature: feature.trim() || null, model: model.trim() || null },
      mode,
    };
    if (rule) change.mutate({ params: { path: { id: rule.id } }, body });
    // The API checks that the setting is the one of the type.
    else make.mutate({ body: { type, ...body } as never });
  };
  return (
    <Form
      onSubmit={submit}
      actions={
        <>
          <Button
            kind="primary"
            type="submit"
            isPending={saving.isPending}
            isDisabled={setting.trim() === ''}
          >
            {saving.isPending ? 'Saving …' : 'Save the rule'}
          </Button>
          <Button onPress={onEnd}>Cancel</Button>
        </>
      }
    >
      <Select
        label="Type"
        value={type}
        options={TYPE_OPTIONS}
        onChange={setType}
        isDisabled={rule !== undefined}
      />
      <TextField
        label={label}
        value={setting}
        onChange={setSetting}
        error={faultOf(field, `config.${field}`, 'config')}
      />
      <Select
        label="When a call breaks it"
        value={mode}
        options={[
          { value: 'observe', label: 'Observe: let it through' },
          { value: 'block', label: 'Block: stop the call' },
        ]}
        onChange={setMode}
      />
      <TextField
        label={type === 'model_downgrade' ? 'Model whose calls go to another' : 'Model (optional)'}
        value={model}
        onChange={setModel}
        error={faultOf('model', 'scope.model', 'scope')}
      />
      <TextField label="Team (optional)" value={team} onChange={setTeam} />
      <TextField label="Feature (optional)" value={feature} onChange={setFeature} />
      <TextField label="Name (optional)" value={name} onChange={setName} error={faultOf('name')} />
      {saving.error && <Notice kind="bad">{errorText(saving.error)}</Notice>}
    </Form>
  );
}
