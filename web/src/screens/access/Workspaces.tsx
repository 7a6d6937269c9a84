import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { type components, fieldError, query } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { day } from '../../app/format';
import { useMay } from '../../app/session';
import { Actor } from '../../parts/Actor';
import { DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { Confirm } from '../../parts/forms/Confirm';
import { TextField } from '../../parts/forms/Fields';
import { FilterSelect } from '../../parts/forms/Filters';
import { Chip, Page } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { SettingsTabs } from '../installation/SettingsTabs';

const PATH = '/api/v1/workspaces';
type Workspace = components['schemas']['Workspace'];

export default function Workspaces() {
  const mayWrite = useMay()({ scope: 'workspaces:admin' });
  const [archived, setArchived] = useFilter<'' | '0' | '1'>('archived', '');
  const [dialog, setDialog] = useState<{ kind: 'new' | 'rename' | 'archive'; workspace?: Workspace }>();
  const offset = useOffset();
  const workspaces = query.useQuery('get', PATH, {
    params: { query: { ...(archived ? { archived } : {}), limit: PAGE_ROWS, offset } },
  });
  const close = () => setDialog(undefined);
  const create = mayWrite && (
    <Button kind="primary" onPress={() => setDialog({ kind: 'new' })}>
      Create a workspace
    </Button>
  );
  return (
    <Page
      title="Workspaces"
      lead="A workspace separates the calls of one project. A key of a workspace sees nothing else."
      actions={create}
      tabs={<SettingsTabs />}
      filters={
        <FilterSelect
          label="State"
          value={archived}
          onChange={setArchived}
          options={[
            { value: '0', label: 'In use' },
            { value: '1', label: 'Archived' },
          ]}
        />
      }
    >
      {workspaces.isPending ? (
        <Loading />
      ) : workspaces.error ? (
        <ErrorState error={workspaces.error} retry={() => void workspaces.refetch()} />
      ) : workspaces.data.workspaces.length === 0 ? (
        archived ? (
          <Empty title="No workspace matches">
            <Button onPress={() => setArchived('')}>Clear filters</Button>
          </Empty>
        ) : (
          <Empty title="No workspaces yet">
            <p>
              Without workspaces every key sees the whole organization. Create one for a team or a customer,
              then create keys for it.
            </p>
            {create}
          </Empty>
        )
      ) : (
        <DataTable
          caption="Workspaces"
          csv={withQuery(PATH, { archived, format: 'csv' })}
          rows={workspaces.data.workspaces}
          rowKey={({ id }) => id}
          more={<Pager page={workspaces.data} />}
          columns={[
            { id: 'name', head: 'Name', cell: ({ name }) => name },
            {
              id: 'project',
              head: 'Project of its calls',
              cell: ({ project_id }) => (
                <Link href={withQuery('/events', { project_id })}>
                  <code>{project_id}</code>
                </Link>
              ),
            },
            {
              id: 'state',
              head: 'State',
              cell: ({ archived_at: at }) =>
                at ? <Chip>Archived {day(at)}</Chip> : <Chip kind="good">In use</Chip>,
            },
            { id: 'created', head: 'Created', cell: ({ created_at }) => day(created_at) },
            { id: 'by', head: 'Created by', cell: ({ created_by }) => <Actor id={created_by} /> },
            {
              id: 'actions',
              head: <span className="visually-hidden">Actions</span>,
              cell: (workspace) =>
                mayWrite &&
                !workspace.archived_at && (
                  <>
                    <Button
                      kind="quiet"
                      aria-label={`Rename ${workspace.name}`}
                      onPress={() => setDialog({ kind: 'rename', workspace })}
                    >
                      Rename
                    </Button>
                    <Button
                      kind="quiet"
                      aria-label={`Archive ${workspace.name}`}
                      onPress={() => setDialog({ kind: 'archive', workspace })}
                    >
                      Archive
                    </Button>
                  </>
                ),
            },
          ]}
        />
      )}
      {dialog?.kind === 'new' && <Create onClose={close} />}
      {dialog?.kind === 'rename' && dialog.workspace && <Rename of={dialog.workspace} onClose={close} />}
      {dialog?.kind === 'archive' && dialog.workspace && <Archive of={dialog.workspace} onClose={close} />}
    </Page>
  );
}

function useDone(onClose: () => void) {
  const client = useQueryClient();
  const toast = useToast();
  return async (sentence: string) => {
    await client.invalidateQueries({ queryKey: ['get', PATH] });
    toast(sentence);
    onClose();
  };
}

function Create({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [project, setProject] = useState('');
  const done = useDone(onClose);
  const create = query.useMutation('post', PATH, {
    onSuccess: ({ name: made }) => done(`The workspace ${made} is created.`),
  });
  return (
    <Confirm
      title="Create a workspace"
      action="Create"
      isOpen
      isBusy={create.isPending}
      isDisabled={name.trim() === ''}
      error={create.error}
      onClose={onClose}
      onConfirm={() =>
        create.mutate({
          body: { name: name.trim(), ...(project.trim() ? { project_id: project.trim() } : {}) },
        })
      }
    >
      <TextField label="Name" value={name} onChange={setName} error={fieldError(create.error, 'name')} />
      <TextField
        label="Project of its calls (optional)"
        value={project}
        onChange={setProject}
        error={fieldError(create.error, 'project_id')}
        help="The label project_id that its calls carry, for good. Empty: the id of the workspace."
      />
    </Confirm>
  );
}

function Rename({ of: workspace, onClose }: { of: Workspace; onClose: () => void }) {
  const [name, setName] = useState(workspace.name);
  const done = useDone(onClose);
  const rename = query.useMutation('patch', `${PATH}/{id}`, {
    onSuccess: () => done('The workspace is renamed.'),
  });
  return (
    <Confirm
      title={`Rename ${workspace.name}`}
      action="Rename"
      isOpen
      isBusy={rename.isPending}
      isDisabled={name.trim() === '' || name.trim() === workspace.name}
      error={rename.error}
      onClose={onClose}
      onConfirm={() => rename.mutate({ params: { path: { id: workspace.id } }, body: { name: name.trim() } })}
    >
      <TextField label="Name" value={name} onChange={setName} error={fieldError(rename.error, 'name')} />
    </Confirm>
  );
}

function Archive({ of: workspace, onClose }: { of: Workspace; onClose: () => void }) {
  const done = useDone(onClose);
  const archive = query.useMutation('delete', `${PATH}/{id}`, {
    onSuccess: () => done(`${workspace.name} is archived.`),
  });
  return (
    <Confirm
      title={`Archive ${workspace.name}`}
      action="Archive"
      isDanger
      isOpen
      isBusy={archive.isPending}
      error={archive.error}
      onClose={onClose}
      onConfirm={() => archive.mutate({ params: { path: { id: workspace.id } } })}
    >
      <p>Its keys are refused from now on. Its calls stay and remain visible to the organization.</p>
    </Confirm>
  );
}
