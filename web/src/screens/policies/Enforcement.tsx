import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { errorText, query } from '../../api/client';
import { useMay } from '../../app/session';
import { type Column, DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { Confirm } from '../../parts/forms/Confirm';
import { MenuButton } from '../../parts/forms/MenuButton';
import { Modal } from '../../parts/forms/Modal';
import { Chip } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { EnforcementPage } from './EnforcementPage';
import { RuleForm } from './RuleForm';
import { limitText, RULE_TYPES, type Rule, ruleName, scopeText } from './ruleTypes';
import { WouldStop } from './WouldStop';

const RULES_KEY = ['get', '/api/v1/enforcement-rules'];

export default function Enforcement() {
  const mayWrite = useMay()({ scope: 'enforcement:write' });
  const client = useQueryClient();
  const toast = useToast();
  const offset = useOffset();
  const [edited, setEdited] = useState<Rule | 'new'>();
  const [removed, setRemoved] = useState<Rule>();
  const [blocking, setBlocking] = useState<Rule>();
  const rules = query.useQuery('get', '/api/v1/enforcement-rules', {
    params: { query: { limit: PAGE_ROWS, offset } },
  });
  const change = query.useMutation('patch', '/api/v1/enforcement-rules/{id}', {
    onSuccess: async (rule) => {
      setBlocking(undefined);
      toast(`${ruleName(rule)}: ${rule.enabled ? `on, ${rule.mode}` : 'off'}.`);
      await client.invalidateQueries({ queryKey: RULES_KEY });
    },
    onError: (error) => toast(errorText(error), 'bad'),
  });
  const remove = query.useMutation('delete', '/api/v1/enforcement-rules/{id}', {
    onSuccess: async () => {
      setRemoved(undefined);
      toast('The rule is removed.');
      await client.invalidateQueries({ queryKey: RULES_KEY });
    },
  });
  const actions: Column<Rule> = {
    id: 'actions',
    head: <span className="visually-hidden">Actions</span>,
    cell: (rule) => {
      const patch = (body: { enabled?: boolean; mode?: Rule['mode'] }) =>
        change.mutate({ params: { path: { id: rule.id } }, body });
      const acts: Record<string, () => void> = {
        edit: () => setEdited(rule),
        block: () => setBlocking(rule),
        observe: () => patch({ mode: 'observe' }),
        toggle: () => patch({ enabled: !rule.enabled }),
        remove: () => setRemoved(rule),
      };
      return (
        <MenuButton
          label="Change"
          name={`Change the rule ${ruleName(rule)}`}
          isPending={change.isPending && change.variables.params.path.id === rule.id}
          items={[
            { id: 'edit', label: 'Edit …' },
            rule.mode === 'block'
              ? { id: 'observe', label: 'Only observe' }
              : { id: 'block', label: 'Block …' },
            { id: 'toggle', label: rule.enabled ? 'Switch off' : 'Switch on' },
            { id: 'remove', label: 'Remove …', isDanger: true },
          ]}
          onAction={(id) => acts[id]?.()}
        />
      );
    },
  };
  return (
    <EnforcementPage
      actions={
        mayWrite && (
          <Button kind="primary" onPress={() => setEdited('new')}>
            Make a rule
          </Button>
        )
      }
    >
      {rules.isPending ? (
        <Loading />
      ) : rules.error ? (
        <ErrorState error={rules.error} retry={() => void rules.refetch()} />
      ) : rules.data.enforcement_rules.length === 0 ? (
        <Empty title="No rules yet">
          <p>
            A rule limits the tokens or tool calls of a call, the budget of a session, repeated calls, or
            sends calls to a cheaper model. Begin with “observe”: it stops nothing, and Savings shows what it
            would save.
          </p>
        </Empty>
      ) : (
        <DataTable
          caption="Enforcement rules, in the order in which they are asked"
          csv={'/api/v1/enforcement-rules?format=csv'}
          columns={mayWrite ? [...COLUMNS, actions] : COLUMNS}
          rows={rules.data.enforcement_rules}
          rowKey={(rule) => rule.id}
          more={<Pager page={rules.data} />}
        />
      )}
      <Modal
        title={edited === 'new' ? 'Make a rule' : 'Edit the rule'}
        isOpen={edited !== undefined}
        onClose={() => setEdited(undefined)}
      >
        {edited && (
          <RuleForm rule={edited === 'new' ? undefined : edited} onEnd={() => setEdited(undefined)} />
        )}
      </Modal>
      <Confirm
        title="Remove the rule"
        action="Remove it"
        isDanger
        isOpen={removed !== undefined}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => removed && remove.mutate({ params: { path: { id: removed.id } } })}
        onClose={() => setRemoved(undefined)}
      >
        <p>{removed && ruleName(removed)}: wrappers stop applying it. Calls that it blocked still name it.</p>
      </Confirm>
      <Confirm
        title={`Block by “${blocking ? ruleName(blocking) : ''}”?`}
        action="Block"
        isDanger
        isOpen={blocking !== undefined}
        isBusy={change.isPending}
        error={change.error}
        onConfirm={() =>
          blocking && change.mutate({ params: { path: { id: blocking.id } }, body: { mode: 'block' } })
        }
        onClose={() => setBlocking(undefined)}
      >
        {blocking && <WouldStop rule={blocking} />}
      </Confirm>
    </EnforcementPage>
  );
}

const COLUMNS: Column<Rule>[] = [
  { id: 'name', head: 'Rule', isWide: true, cell: ruleName },
  { id: 'type', head: 'Type', cell: (rule) => RULE_TYPES[rule.type].name },
  { id: 'limit', head: 'Limit', isNumber: true, cell: limitText },
  { id: 'scope', head: 'Calls', cell: scopeText },
  {
    id: 'state',
    head: 'State',
    cell: (rule) =>
      !rule.enabled ? (
        <Chip>Off</Chip>
      ) : rule.mode === 'block' ? (
        <Chip kind="bad">Blocks</Chip>
      ) : (
        <Chip kind="accent">Observes</Chip>
      ),
  },
];
